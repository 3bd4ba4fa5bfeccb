// Package agreement measures how well inferred definitions agree with the true ones, field by field. Tests and
// evaluations use it to score package infer.
//
// result := agreement.Of(agreement.Pair{Inferred: a, Reference: b})
// fmt.Println(result) // 12 of 13 fields agree
package agreement

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/infer"
)

// A Pair is an inferred message type and the true one that it should be equal to. Either may be nil.
type Pair struct {
	// Inferred is the inferred message type, and Reference the true one.
	Inferred, Reference protoreflect.MessageDescriptor
}

// A Result counts how many fields of inferred message types agree with the fields of the same number in the
// true (reference) types. Each field of each pair of types is counted once.
//
// Two fields are the same if they are equal. They are compatible if the difference does not show on the wire for
// values that both allow: an int64 for an int32, bool or enum; singular for optional; packed for unpacked; a
// list of entries for a map.
type Result struct {
	// Fields is the number of inferred fields that have a reference field.
	Fields int `json:"fields"`

	// Agree is the number of fields whose kind, type and label are compatible with the true ones.
	Agree int `json:"agree"`

	// Kind is the number of fields whose kind of values (string, varint, …) was inferred correctly.
	Kind int `json:"kind"`

	// Type is the number of fields whose type was inferred exactly.
	Type int `json:"type"`
	// TypeCompatible is the number of fields whose type has the same encoding as the true one, such as
	// int32 for bool.
	TypeCompatible int `json:"type_compatible"`
	// Label is the number of fields whose label (singular, repeated, …) was inferred correctly.
	Label int `json:"label"`
	// LabelCompatible is the number of fields that can have many values (repeated or a map) in both definitions
	// or in neither.
	LabelCompatible int `json:"label_compatible"`

	// Oneof is the number of fields whose membership in a oneof was inferred correctly.
	Oneof int `json:"oneof"`

	// Extra is the number of inferred fields that the reference lacks.
	Extra int `json:"extra"`

	// Missing is the number of reference fields of the compared types that were not inferred.
	Missing int `json:"missing"`
	// Disagreements lists the fields that were inferred wrongly.
	Disagreements []Disagreement `json:"disagreements"`
}

// A Disagreement is a difference between an inferred field and its reference field.
type Disagreement struct {
	// Message is the full name of the inferred message type.
	Message string `json:"message"`

	// Reference is the full name of the reference field, or of its message if the field is extra.
	Reference string `json:"reference"`
	// Number is the field number.
	Number int32 `json:"number"`

	// What is the property that differs: "kind", "type" or "label"; or "extra" for a field that does
	// not exist.
	What string `json:"what"`
	// Inferred is the inferred value of the property.
	Inferred string `json:"inferred"`
	// Expected is the true value of the property.
	Expected string `json:"expected"`
	// Compatible is set if the difference does not show on the wire for values that both allow.
	Compatible bool `json:"compatible"`
}

// String summarizes the result: "12 of 13 fields agree".
func (a *Result) String() string { return fmt.Sprintf("%d of %d fields agree", a.Agree, a.Fields) }

// maxPairs is the maximum number of pairs of types that are compared.
const maxPairs = 200_000

// Of compares the message types of each pair and, recursively, the types of their fields. A pair with a nil side
// is skipped.
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
		// Types can be recursive.
		if met[id] {
			continue
		}
		met[id] = true
		pairs = append(pairs, a.compare(p)...)
	}
	return a
}

// compare counts the fields of one pair of message types. It returns the pairs of types nested in them.
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
				// Map entries are synthetic types, so the types of the values are compared instead.
				x, y = fd.MapValue().Message(), ref.MapValue().Message()
			}
			below = append(below, Pair{x, y})
		}
	}
	return below
}

// entryOrMessage returns the message type of a field, which is the entry type for a map; nil for other fields.
func entryOrMessage(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.Kind() != protoreflect.MessageKind && fd.Kind() != protoreflect.GroupKind {
		return nil
	}
	return fd.Message()
}

// field compares the inferred field fd with the true field ref, and counts the result.
func (a *Result) field(fd, ref protoreflect.FieldDescriptor) {
	a.Fields++
	good := true

	// count compares one property and records a difference.
	count := func(what, got, want string, compatible bool, same, alike *int) {
		// Equal values are compatible in any case.
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

// kindOf returns how the values of a declared field appear on the wire.
func kindOf(fd protoreflect.FieldDescriptor) wire.Kind {
	if fd.IsList() && fd.IsPacked() {
		return wire.KindPacked
	}
	return elementKind(fd.Kind())
}

// elementKind returns how a single value of a declared type appears on the wire.
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

// elementOf returns the kind of a single element of the field fd, whose values have the kind k: packing is
// ignored.
func elementOf(k wire.Kind, fd protoreflect.FieldDescriptor) wire.Kind {
	if k == wire.KindPacked {
		return elementKind(fd.Kind())
	}
	return k
}

// typeOfField returns the name of the declared type. All message types have the same name, because their fields
// are compared separately.
func typeOfField(fd protoreflect.FieldDescriptor) string { return fd.Kind().String() }

// typeClass returns the name of the set of types that can read each other's encoding without loss for common
// values.
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
