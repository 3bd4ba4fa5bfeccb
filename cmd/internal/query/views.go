package query

import (
	"context"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/wire"
	"unwire/schema"
)

// Views have everything that decides how the frames of one method are decoded: definitions, evidence from
// other messages, and field types that a user chose.
type Views struct {
	// defs are the definitions; nil for none.
	defs *schema.Schema

	// pool is the evidence from other messages of the method; nil to use only that of each message itself.
	pool *decode.Pool

	// choices are the chosen field types, by direction.
	choices [2][]kind.Choice

	// memory is reused for one frame after another, by direction.
	memory [2]decode.Memory
}

// Views returns how the frames of an exchange are decoded: by the definitions defs, which may be nil, by
// the field types stored in the capture, and by the evidence from the method's other messages.
func (c *Capture) Views(ctx context.Context, at conversation.Resolved, defs *schema.Schema) *Views {
	return &Views{defs: defs, pool: c.evidenceOf(ctx, at), choices: at.Choices}
}

// ViewsOfMethod returns how frames of a method are decoded while they are recorded: by the definitions defs, which
// may be nil, and by the field types stored in the capture, but without evidence from other messages.
func (c *Capture) ViewsOfMethod(ctx context.Context, method string, defs *schema.Schema) *Views {
	return &Views{defs: defs, choices: decode.ChoicesOf(ctx, c.Store, method)}
}

// Add adds chosen field types. A choice without a direction applies to both.
func (v *Views) Add(choices []Choice) {
	for _, c := range choices {
		for d := range v.choices {
			if !c.HasDir || c.Dir == captures.Direction(d) {
				v.choices[d] = append(v.choices[d], c.Choice)
			}
		}
	}
}

// Of returns how a call's frames in one direction are decoded. Only one goroutine at a time may use v and what Of returns.
func (v *Views) Of(call decode.Call, dir captures.Direction) decode.View {
	view := decode.View{Evidence: v.pool.Of(dir), Choices: v.choices[dir&1], Find: v.Definition, Memory: &v.memory[dir&1]}
	if v.defs != nil {
		view.Type = v.defs.FrameType(call, dir)
	}
	return view
}

// Messages returns the number of messages from which the evidence for a direction was collected.
func (v *Views) Messages(dir captures.Direction) int {
	if v.pool == nil {
		return 1
	}
	return v.pool.Frames[dir&1]
}

// FieldsOf returns the fields of a message of the named type.
func (v *Views) FieldsOf(t *wire.Tree, name string) []*field.Field {
	return decode.View{Type: v.Definition(name), Find: v.Definition}.Fields(t)
}

// Definition returns the definition of a message type by its full name; nil if it is not known.
func (v *Views) Definition(name string) protoreflect.MessageDescriptor {
	if v.defs != nil {
		if md := v.defs.Message(name[strings.LastIndexByte(name, '/')+1:]); md != nil {
			return md
		}
	}
	return known.Message(name)
}
