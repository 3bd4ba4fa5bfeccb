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

// Views are how the frames of one method are read.
type Views struct {
	defs    *schema.Schema // nil for none
	pool    *decode.Pool   // nil for a message's own bytes
	choices [2][]kind.Choice
}

// Views returns how the frames of an exchange are read: by definitions, which may be
// nil, by what the capture remembers that somebody chose, and by the evidence of the
// method's other messages.
func (c *Capture) Views(ctx context.Context, at conversation.Resolved, defs *schema.Schema) *Views {
	return &Views{defs: defs, pool: c.evidenceOf(ctx, at), choices: at.Choices}
}

// ViewsOfMethod is Views without evidence, for frames that are read while they are
// recorded.
func (c *Capture) ViewsOfMethod(ctx context.Context, method string, defs *schema.Schema) *Views {
	return &Views{defs: defs, choices: decode.ChoicesOf(ctx, c.Store, method)}
}

// Add adds choices to those of the views.
func (v *Views) Add(choices []Choice) {
	for _, c := range choices {
		for d := range v.choices {
			if !c.HasDir || c.Dir == captures.Direction(d) {
				v.choices[d] = append(v.choices[d], c.Choice)
			}
		}
	}
}

// Of is the view of a call's frames in one direction.
func (v *Views) Of(call decode.Call, dir captures.Direction) decode.View {
	view := decode.View{Evidence: v.pool.Of(dir), Choices: v.choices[dir&1], Find: v.Definition}
	if v.defs != nil {
		view.Type = v.defs.FrameType(call, dir)
	}
	return view
}

// Messages is how many messages the evidence of a direction was drawn from.
func (v *Views) Messages(dir captures.Direction) int {
	if v.pool == nil {
		return 1
	}
	return v.pool.Frames[dir&1]
}

// FieldsOf reads a message whose type is named.
func (v *Views) FieldsOf(t *wire.Tree, name string) []*field.Field {
	return decode.View{Type: v.Definition(name), Find: v.Definition}.Fields(t)
}

// Definition is the definition of a message by its full name, or nil.
func (v *Views) Definition(name string) protoreflect.MessageDescriptor {
	if v.defs != nil {
		if md := v.defs.Message(name[strings.LastIndexByte(name, '/')+1:]); md != nil {
			return md
		}
	}
	return known.Message(name)
}
