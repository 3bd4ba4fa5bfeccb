package decode

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/wire"
)

// A View says by what the fields of a message are read. The zero value is the
// message's own bytes.
//
// Shape: a choice comes before the declaration, that before the evidence.
type View struct {
	Type protoreflect.MessageDescriptor // its definition, or nil

	// Of other messages of its kind; nil for none.
	Evidence *kind.Pooled

	Choices []kind.Choice // what somebody said of its fields

	// Find gives the definition of a message that an Any holds by its full name, or
	// nil; a nil Find knows those of package known.
	Find func(name string) protoreflect.MessageDescriptor

	// Of what is there of a field that is cut off: where it begins, and such fields
	// around it.
	base, cuts int
}

// Reader reads t as the view says, but for its Type.
func (v View) Reader(t *wire.Tree) *kind.Reader {
	r := v.Evidence.NewReader(t)
	r.Choose(v.Choices)
	return r
}

// Fields returns the fields of a tree. Those of a Type have names, and those that
// agree with their declaration are read as declared, with probability 1; a field that
// contradicts it, or a choice, says so in Error.
func (v View) Fields(t *wire.Tree) []*field.Field {
	if v.Find == nil {
		v.Find = known.Message
	}
	return v.fieldsOf(t, v.Reader(t), 0, v.Type)
}

// anyValue is the field of an Any that holds the message.
const anyValue = 2

func (v View) fieldsOf(t *wire.Tree, r *kind.Reader, i int32, md protoreflect.MessageDescriptor) []*field.Field {
	out := []*field.Field{}
	var held protoreflect.MessageDescriptor
	if name, ok := r.AnyType(i); ok {
		held = v.Find(name)
	}
	for c := range t.Children(i) {
		n := t.Node(c)
		f := &field.Field{
			N: n.Number, Wire: n.Type.String(), Off: v.base + n.Off, Len: n.End - n.Off, Val: v.base + n.Val,
			P: 1, Alternatives: []field.Alternative{},
		}
		if n.Err != nil {
			f.Error = wire.ErrorText(n.Err, v.base)
		}
		sub := v.read(f, t, r, c, md, held)
		setRemark(f, r, c)
		if n.Type == wire.Garbage {
			f.Cut = v.cutField(t, c, md)
		}
		if f.Kind == string(wire.KindMessage) || f.Kind == string(wire.KindGroup) {
			f.Fields = v.fieldsOf(t, r, c, sub)
		}
		out = append(out, f)
	}
	return out
}

// read sets in f how node c, a field of an md, is read: as chosen, as declared, or as
// the evidence has it. Held is the type of what an Any holds. It returns the type of
// the message that f is, or nil.
func (v View) read(f *field.Field, t *wire.Tree, r *kind.Reader, c int32, md, held protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
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
		setReadings(f, r.Readings(c))
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
	f.Symbol = ""
	setReadings(f, r.Readings(c))
	return nil
}

// declarationIn is the declaration of a field of md; nil without one.
func declarationIn(md protoreflect.MessageDescriptor, n *wire.Node) protoreflect.FieldDescriptor {
	if md == nil || n.Type == wire.Garbage || n.Number > uint64(protowire.MaxValidNumber) {
		return nil
	}
	return md.Fields().ByNumber(protowire.Number(n.Number))
}

// setRemark sets what a field's value looks like.
func setRemark(f *field.Field, r *kind.Reader, i int32) {
	if s := r.Remark(i, wire.Kind(f.Kind), f.Type); s != (kind.Remark{}) {
		f.Form, f.Shape, f.ShapeP, f.Note = s.Form, s.Shape, s.P, s.Note
	}
}

// A remembering source is one that keeps readings: a *store.Store, for one.
type remembering interface {
	Readings(ctx context.Context, method string) ([]captures.Reading, error)
}

// LoadChoices sets the choices that src keeps for the method of ex. One that cannot
// be read is left out.
func (ex *Exchange) LoadChoices(ctx context.Context, src captures.Source) {
	if s, ok := src.(remembering); ok {
		ex.Choices = ChoicesOf(ctx, s, MethodOf(&ex.Exchange, ex.Call))
	}
}

// ChoicesOf returns the choices that src keeps for a method, by direction.
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
