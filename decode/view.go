package decode

import (
	"context"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/wire"
)

// A View determines how the fields of a message are decoded. The zero value infers types from the message's own
// bytes.
//
// Shape: a user's choice takes precedence over the declaration in a schema, and that over inferred types.
type View struct {
	// Type is the message's definition in the schema, or nil.
	Type protoreflect.MessageDescriptor

	// Evidence are statistics of other messages of the same type, which improve type inference; nil if there are
	// none.
	Evidence *kind.Pooled

	// Choices are the types that users chose for fields.
	Choices []kind.Choice

	// Find returns the definition of the message inside a google.protobuf.Any by its full name, or nil. The
	// default is known.Message.
	Find func(name string) protoreflect.MessageDescriptor

	// Memory, if set, is reused for each message that Each decodes, which makes many small messages several times
	// faster.
	//
	// Limits: only one goroutine at a time may use a View with the same Memory.
	Memory *Memory

	// base is the offset, in the message, of the truncated field that is being decoded, and cuts the number of
	// truncated fields around it.
	base, cuts int
}

// Reader returns a kind.Reader, which infers the types of t's fields, with v's evidence and choices. It ignores
// v.Type.
func (v View) Reader(t *wire.Tree) *kind.Reader {
	r := v.Evidence.NewReader(t)
	r.Choose(v.Choices)
	return r
}

// Fields returns the decoded fields of a tree. If v has a Type, fields have names, and fields that match their
// declaration are decoded as declared, with probability 1. A field that contradicts its declaration or a choice has
// that in Error.
func (v View) Fields(t *wire.Tree) []*field.Field {
	u := v.undecoded(t)
	defer u.release()
	return u.collect()
}

// Each yields the fields that Fields returns, one at a time, so that a caller needs no memory for all fields of a large
// message. The fields inside of a yielded field are complete.
//
// Limits: a yielded field is valid until the next one is yielded. The fields inside of it are valid for longer.
func (v View) Each(t *wire.Tree) iter.Seq[*field.Field] {
	return func(yield func(*field.Field) bool) {
		u := v.undecoded(t)
		defer u.release()
		u.each(true, yield)
	}
}

// undecoded returns the fields of a tree, of which none is decoded yet. The caller should release them.
func (v View) undecoded(t *wire.Tree) *undecoded {
	if v.Find == nil {
		v.Find = known.Message
	}
	if v.Memory == nil {
		v.Memory = &Memory{}
	}
	u := &undecoded{v: &v, t: t, r: v.Memory.reader(t, v.Evidence), md: v.Type}
	u.r.Choose(v.Choices)
	return u
}

// collect returns the decoded fields. The list is never nil.
func (u *undecoded) collect() []*field.Field {
	list := []*field.Field{}
	u.each(false, func(f *field.Field) bool {
		list = append(list, f)
		return true
	})
	return list
}

// An undecoded has the fields of a message before they are decoded. A message of a megabyte may have a million fields,
// and decoded they would take a thousand times their size at once.
type undecoded struct {
	// v determines how the fields are decoded. Those of all messages in one message share it.
	v *View

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

// release ends the use of the fields. Those that were decoded stay valid.
func (u *undecoded) release() { u.v.Memory.free, u.v.Memory.evidence = u.r, u.v.Evidence }

// each calls yield with the decoded fields, one at a time, until it returns false. The fields inside of each are
// complete. If reuse is true, a field is valid until the next call only.
func (u *undecoded) each(reuse bool, yield func(*field.Field) bool) {
	u.heads(reuse, func(h decodedHead) bool {
		if h.fields != nil {
			h.Fields = h.fields.collect()
		}
		if h.cutFields != nil {
			h.Cut.Fields = h.cutFields.collect()
		}
		return yield(h.Field)
	})
}

// anyValue is the number of the field of google.protobuf.Any that contains the message.
const anyValue = 2

// heads calls yield with the decoded fields, one at a time, until it returns false. The fields inside of them are not
// decoded. If reuse is true, a field is valid until the next call only.
func (u *undecoded) heads(reuse bool, yield func(decodedHead) bool) {
	// held is the type of the message inside an Any.
	var held protoreflect.MessageDescriptor
	if name, ok := u.r.AnyType(u.i); ok {
		held = u.v.Find(name)
	}
	var f *field.Field
	for c := u.t.Nodes[u.i].First; c != wire.None; c = u.t.Nodes[c].Next {
		if f == nil || !reuse {
			f = new(field.Field)
		}
		if !yield(u.head(f, c, held)) {
			return
		}
	}
}

// head decodes node c into f. held is the type of the message inside an Any, or nil.
func (u *undecoded) head(f *field.Field, c int32, held protoreflect.MessageDescriptor) decodedHead {
	n := u.t.Node(c)
	*f = field.Field{
		N: n.Number, Wire: n.Type.String(), Off: u.v.base + n.Off, Len: n.End - n.Off, Val: u.v.base + n.Val,
		P: 1, Alternatives: []field.Alternative{},
	}
	if !n.Sound() {
		f.Error = wire.ErrorText(u.t.Fault(n), u.v.base)
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

// decodeField decodes node c into f: as the user chose, as declared in md, or as inferred. held is the type of the
// message inside an Any, or nil. It returns the type of the message in f if f is one, or nil.
func (v *View) decodeField(f *field.Field, t *wire.Tree, r *kind.Reader, c int32, md, held protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
	isChosen, unfit := r.Chosen(c)
	if unfit != nil && f.Error == "" {
		f.Error = unfit.Error()
	}
	fd := declarationIn(md, t.Node(c))
	if fd != nil {
		f.Name = string(fd.Name())
	}

	declared := fd != nil && !isChosen && setDeclared(f, t, c, fd)

	switch {
	case isChosen:
		v.Memory.setReadings(f, r, c)
		f.Chosen = true
		if fd != nil {
			return fd.Message()
		}
		return nil
	case held != nil && f.N == anyValue && t.IsMessage(c):
		f.Kind, f.Type, f.Value, f.Error = string(wire.KindMessage), string(held.FullName()), nil, ""
		return held
	case declared:
		return fd.Message()
	case fd != nil && f.Error == "":
		f.Error = "the schema declares " + declarationOf(fd)
	}
	// setDeclared may have set a symbol before it found the contradiction.
	f.Symbol = ""
	v.Memory.setReadings(f, r, c)
	return nil
}

// declarationIn returns the declaration of node n in md, or nil.
func declarationIn(md protoreflect.MessageDescriptor, n *wire.Node) protoreflect.FieldDescriptor {
	if md == nil || n.Type == wire.Garbage || n.Number > uint64(protowire.MaxValidNumber) {
		return nil
	}
	return md.Fields().ByNumber(protowire.Number(n.Number))
}

// setRemark sets in f the format or well-known type that the value of node i resembles: a UUID, a time, a
// Timestamp.
func setRemark(f *field.Field, r *kind.Reader, i int32) {
	if s := r.Remark(i, wire.Kind(f.Kind), f.Type); s != (kind.Remark{}) {
		f.Form, f.Shape, f.ShapeP, f.Note = s.Form, s.Shape, s.P, s.Note
	}
}

// A remembering is a source that stores the types that users chose for fields, for example a *store.Store.
type remembering interface {
	// Readings returns the types that the user chose for the fields of a method.
	Readings(ctx context.Context, method string) ([]captures.Reading, error)
}

// HasChoices reports whether src stores any types that a user chose for fields, or cannot be asked.
func HasChoices(ctx context.Context, src captures.Source) bool {
	s, ok := src.(remembering)
	if !ok {
		return false
	}
	list, err := s.Readings(ctx, "")
	return err != nil || len(list) > 0
}

// LoadChoices sets ex.Choices to the types that a user chose for fields of the method of ex, and that src stores.
// Malformed choices are ignored.
func (ex *Exchange) LoadChoices(ctx context.Context, src captures.Source) {
	if s, ok := src.(remembering); ok {
		ex.Choices = ChoicesOf(ctx, s, MethodOf(&ex.Exchange, ex.Call))
	}
}

// ChoicesOf returns the choices that src stores for a method, by direction.
func ChoicesOf(ctx context.Context, src remembering, method string) (choices [2][]kind.Choice) {
	list, err := src.Readings(ctx, method)
	if err != nil {
		return choices
	}
	for _, r := range list {
		if c, err := kind.ParseChoice(r.Path + ":" + r.Type); err == nil {
			choices[r.Dir&1] = append(choices[r.Dir&1], c)
		}
	}
	return choices
}
