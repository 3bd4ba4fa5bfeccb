package decode

import (
	"iter"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An undecoded has the fields of a message before they are decoded. A message of a megabyte may have a million fields,
// and decoded they would take a thousand times their size at once.
type undecoded struct {
	// v determines how the fields are decoded.
	v View

	// t is the tree that contains the message, and i is its node.
	t *wire.Tree
	i int32

	// r infers the types of the fields.
	r *kind.Reader

	// md is the type of the message; nil if it is not known.
	md protoreflect.MessageDescriptor
}

// A decodedHead is one decoded field without the fields inside of it.
type decodedHead struct {
	*field.Field

	// fields are the fields inside of the field; nil if it is neither a message nor a group.
	fields *undecoded

	// cutFields are the fields inside of Cut, in the same way.
	cutFields *undecoded
}

// each yields the decoded fields, one at a time. The fields inside of a yielded field are complete.
func (u *undecoded) each() iter.Seq[*field.Field] {
	return func(yield func(*field.Field) bool) {
		for h := range u.heads() {
			if h.fields != nil {
				h.Fields = collect(h.fields.each())
			}
			if h.cutFields != nil {
				h.Cut.Fields = collect(h.cutFields.each())
			}
			if !yield(h.Field) {
				return
			}
		}
	}
}

// anyValue is the number of the field of google.protobuf.Any that contains the message.
const anyValue = 2

// heads yields the decoded fields, one at a time, without the fields inside of them.
func (u *undecoded) heads() iter.Seq[decodedHead] {
	// held is the type of the message inside an Any.
	var held protoreflect.MessageDescriptor
	if name, ok := u.r.AnyType(u.i); ok {
		held = u.v.Find(name)
	}
	return func(yield func(decodedHead) bool) {
		for c := u.t.Nodes[u.i].First; c != wire.None; c = u.t.Nodes[c].Next {
			if !yield(u.head(c, held)) {
				return
			}
		}
	}
}

// head returns the decoded field in node c. held is the type of the message inside an Any, or nil.
func (u *undecoded) head(c int32, held protoreflect.MessageDescriptor) decodedHead {
	n := u.t.Node(c)
	f := &field.Field{
		N: n.Number, Wire: n.Type.String(), Off: u.v.base + n.Off, Len: n.End - n.Off, Val: u.v.base + n.Val,
		P: 1, Alternatives: []field.Alternative{},
	}
	if n.Err != nil {
		f.Error = wire.ErrorText(n.Err, u.v.base)
	}
	h := decodedHead{Field: f}
	sub := u.v.decodeField(f, u.t, u.r, c, u.md, held)
	setRemark(f, u.r, c)
	if n.Type == wire.Garbage {
		f.Cut, h.cutFields = u.v.cutField(u.t, c, u.md)
	}
	if f.Kind == string(wire.KindMessage) || f.Kind == string(wire.KindGroup) {
		h.fields = &undecoded{v: u.v, t: u.t, r: u.r, i: c, md: sub}
	}
	return h
}
