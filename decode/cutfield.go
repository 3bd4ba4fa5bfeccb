package decode

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxCuts is the maximum number of truncated fields that are decoded inside each other.
const maxCuts = 100

// cutField decodes the available part of node c of t, if that is a length-delimited field that extends beyond the
// end of the data, without the fields inside of it. It returns nil if the node is something else, or if no byte of the
// field's value is available. fields are the fields inside of the part; nil if it is not a message.
//
// Shape: the field is a message if md, the declared type of the enclosing message or nil, declares that, or if the
// available part parses as one apart from its missing end. It is a string if the available part is text, up to the
// last whole character. Otherwise it is bytes.
func (v View) cutField(t *wire.Tree, c int32, md protoreflect.MessageDescriptor) (f *field.Field, fields *undecoded) {
	n := t.Node(c)
	// A type assertion, since errors.As is slow and a message may have a million errors.
	if e, ok := t.Fault(n).(*wire.Error); !ok || e.Reason != wire.LengthRange || v.cuts >= maxCuts {
		return nil, nil
	}
	data := t.Payload(c)
	tag, tagLen := wire.ConsumeVarint(data)
	if tagLen <= 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		return nil, nil
	}
	_, lengthLen := wire.ConsumeVarint(data[tagLen:])
	if lengthLen <= 0 {
		return nil, nil
	}
	head := tagLen + lengthLen
	if head == len(data) {
		return nil, nil
	}

	// The tag is sound, so number and type are known. Only the value is incomplete.
	f = &field.Field{
		N: tag >> 3, Wire: wire.Len.String(), Off: v.base + n.Off, Len: n.End - n.Off, Val: v.base + n.Off + head,
		P: 1, Alternatives: []field.Alternative{},
	}
	var fd protoreflect.FieldDescriptor
	if md != nil {
		if fd = md.Fields().ByNumber(protowire.Number(f.N)); fd != nil {
			f.Name = string(fd.Name())
		}
	}

	// The reading of the value: as declared, else as its bytes suggest.
	there := data[head:]
	words := wholeRunes(there)
	sub := wire.Parse(there, wire.Options{})
	switch {
	case fd != nil && fd.Message() != nil, fd == nil && !IsText(words) && sub.OnlyTruncated():
		f.Kind, f.Type = string(wire.KindMessage), string(wire.KindMessage)
		var held protoreflect.MessageDescriptor
		if fd != nil {
			held, f.Type = fd.Message(), string(fd.Message().FullName())
		}
		v.base, v.cuts, v.Evidence, v.Choices, v.Memory = f.Val, v.cuts+1, nil, nil, &Memory{}
		fields = &undecoded{v: &v, t: sub, r: kind.NewReader(sub, nil), md: held}
	case IsText(words):
		f.Kind, f.Type, f.Value = string(wire.KindString), string(wire.KindString), string(words)
	default:
		f.Kind, f.Type, f.Value = string(wire.KindBytes), string(wire.KindBytes), there
	}
	return f, fields
}

// wholeRunes returns b without an incomplete UTF-8 character at its end.
func wholeRunes(b []byte) []byte {
	for k := len(b) - 1; k >= 0 && k > len(b)-utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) && !utf8.FullRune(b[k:]) {
			return b[:k]
		}
	}
	return b
}
