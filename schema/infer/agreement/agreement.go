// Package agreement compares inferred definitions with those that they should be,
// field by field, and counts how far the two agree.
package agreement

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/infer"
)

// A Pair is an inferred message and the one that it should be.
type Pair struct {
	Inferred, Reference protoreflect.MessageDescriptor
}

// A Result counts how far inferred fields agree with reference ones of the
// same number, below some pairs of messages. Each field of each pair of types
// that meet counts once.
//
// Same means equal. Compatible means that the difference does not show on the
// wire for the values both can hold: an int64 for an int32, a bool or an enum;
// singular for optional; packed for unpacked; a list of entries for a map.
type Result struct {
	// inferred ones with a reference
	Fields int `json:"fields"`

	// kind, type and label compatible
	Agree int `json:"agree"`

	// kinds the same
	Kind int `json:"kind"`

	// types the same
	Type            int `json:"type"`
	TypeCompatible  int `json:"type_compatible"`
	Label           int `json:"label"`
	LabelCompatible int `json:"label_compatible"`

	// fields rightly said to be in a oneof or not
	Oneof int `json:"oneof"`

	// inferred fields that the reference has not
	Extra int `json:"extra"`

	// reference fields of the types met that were not inferred
	Missing       int            `json:"missing"`
	Disagreements []Disagreement `json:"disagreements"`
}

// A Disagreement is a field that is not the same, and whether it is compatible.
type Disagreement struct {
	// of the inferred field
	Message string `json:"message"`

	// full name of the reference field, or of its message
	Reference string `json:"reference"`
	Number    int32  `json:"number"`

	// kind, type, label, extra
	What       string `json:"what"`
	Inferred   string `json:"inferred"`
	Expected   string `json:"expected"`
	Compatible bool   `json:"compatible"`
}

// String returns "12 of 13 fields agree", the count of those compatible in all.
func (a *Result) String() string { return fmt.Sprintf("%d of %d fields agree", a.Agree, a.Fields) }

// maxPairs bounds the pairs of types that are compared.
const maxPairs = 200_000

// Of compares the messages of each pair, and those they lead to. Pairs with
// a nil side are left out.
func Of(pairs ...Pair) *Result {
	a := &Result{Disagreements: []Disagreement{}}
	met := map[[2]protoreflect.FullName]bool{}
	for len(pairs) > 0 && len(met) < maxPairs {
		p := pairs[0]
		pairs = pairs[1:]
		if p.Inferred == nil || p.Reference == nil {
			continue
		}
		id := [2]protoreflect.FullName{p.Inferred.FullName(), p.Reference.FullName()}
		if met[id] {
			continue
		}
		met[id] = true
		pairs = append(pairs, a.compare(p)...)
	}
	return a
}

// compare counts the fields of one pair and returns the pairs below it.
func (a *Result) compare(p Pair) (below []Pair) {
	fields, refs := p.Inferred.Fields(), p.Reference.Fields()
	for i := range refs.Len() {
		if fields.ByNumber(refs.Get(i).Number()) == nil {
			a.Missing++
		}
	}
	for i := range fields.Len() {
		fd := fields.Get(i)
		ref := refs.ByNumber(fd.Number())
		if ref == nil {
			a.Extra++
			a.Disagreements = append(a.Disagreements, Disagreement{
				Message: string(p.Inferred.FullName()), Reference: string(p.Reference.FullName()),
				Number: int32(fd.Number()), What: "extra", Inferred: typeOfField(fd),
			})
			continue
		}
		a.field(fd, ref)
		if x, y := entryOrMessage(fd), entryOrMessage(ref); x != nil && y != nil {
			if fd.IsMap() && ref.IsMap() {
				// The entries are not fields of anybody's; what they hold is.
				x, y = fd.MapValue().Message(), ref.MapValue().Message()
			}
			below = append(below, Pair{x, y})
		}
	}
	return below
}

// entryOrMessage is the type of a message field, a map's entry included.
func entryOrMessage(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.Kind() != protoreflect.MessageKind && fd.Kind() != protoreflect.GroupKind {
		return nil
	}
	return fd.Message()
}

func (a *Result) field(fd, ref protoreflect.FieldDescriptor) {
	a.Fields++
	good := true
	count := func(what, got, want string, compatible bool, same, alike *int) {
		if got == want {
			*same++
			compatible = true
		} else {
			a.Disagreements = append(a.Disagreements, Disagreement{
				Message: string(fd.Parent().FullName()), Reference: string(ref.FullName()), Number: int32(fd.Number()),
				What: what, Inferred: got, Expected: want, Compatible: compatible,
			})
		}
		if compatible {
			*alike++
		}
		good = good && compatible
	}
	var ignore int
	gotKind, wantKind := kindOf(fd), kindOf(ref)
	count("kind", string(gotKind), string(wantKind), elementOf(gotKind, fd) == elementOf(wantKind, ref), &a.Kind, &ignore)
	count("type", typeOfField(fd), typeOfField(ref), typeClass(fd) == typeClass(ref), &a.Type, &a.TypeCompatible)
	got, want := infer.LabelOfField(fd), infer.LabelOfField(ref)
	count("label", got, want, infer.IsMany(got) == infer.IsMany(want), &a.Label, &a.LabelCompatible)
	if schema.InOneof(fd) == schema.InOneof(ref) {
		a.Oneof++
	}
	if good {
		a.Agree++
	}
}

// kindOf is the kind of a declared field, in the contract's words.
func kindOf(fd protoreflect.FieldDescriptor) wire.Kind {
	if fd.IsList() && fd.IsPacked() {
		return wire.KindPacked
	}
	return elementKind(fd.Kind())
}

// elementKind is the kind of a value of the declared kind.
func elementKind(k protoreflect.Kind) wire.Kind {
	switch k {
	case protoreflect.MessageKind:
		return wire.KindMessage
	case protoreflect.GroupKind:
		return wire.KindGroup
	case protoreflect.StringKind:
		return wire.KindString
	case protoreflect.BytesKind:
		return wire.KindBytes
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return wire.KindFixed32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire.KindFixed64
	}
	return wire.KindVarint
}

// elementOf is the kind with packing taken off.
func elementOf(k wire.Kind, fd protoreflect.FieldDescriptor) wire.Kind {
	if k == wire.KindPacked {
		return elementKind(fd.Kind())
	}
	return k
}

// typeOfField is the declared type; messages are all one, their fields are compared.
func typeOfField(fd protoreflect.FieldDescriptor) string { return fd.Kind().String() }

// typeClass is what types that read each other's bytes have in common.
func typeClass(fd protoreflect.FieldDescriptor) string {
	switch k := fd.Kind(); k {
	case protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return "varint"
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return "zigzag"
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return "fixed32"
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "fixed64"
	default:
		return k.String()
	}
}
