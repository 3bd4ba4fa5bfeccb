package decode

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxCuts bounds fields that are cut off within each other.
const maxCuts = 100

// cutField reads what is there of a field that is longer than the bytes that are left; nil
// where node c is something else, or where nothing of it is there.
//
// Shape: a message where the declaration says so, or where nothing is wrong with it but
// that it ends; text where that is all it is, up to its last whole character; else bytes.
func (v View) cutField(t *wire.Tree, c int32, md protoreflect.MessageDescriptor) *field.Field {
	var e *wire.Error
	n := t.Node(c)
	if !errors.As(n.Err, &e) || e.Reason != wire.LengthRange || v.cuts >= maxCuts {
		return nil
	}
	data := t.Payload(c)
	tag, tagLen := wire.ConsumeVarint(data)
	if tagLen <= 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		return nil
	}
	_, lengthLen := wire.ConsumeVarint(data[tagLen:])
	if lengthLen <= 0 {
		return nil
	}
	head := tagLen + lengthLen
	if head == len(data) {
		return nil
	}
	f := &field.Field{
		N: tag >> 3, Wire: wire.Len.String(), Off: v.base + n.Off, Len: n.End - n.Off, Val: v.base + n.Off + head,
		P: 1, Alternatives: []field.Alternative{},
	}
	var fd protoreflect.FieldDescriptor
	if md != nil {
		if fd = md.Fields().ByNumber(protowire.Number(f.N)); fd != nil {
			f.Name = string(fd.Name())
		}
	}
	there := data[head:]
	words := wholeRunes(there)
	sub := wire.Parse(there, wire.Options{})
	switch {
	case fd != nil && fd.Message() != nil, fd == nil && !IsText(words) && sub.OnlyCut():
		f.Kind, f.Type = string(wire.KindMessage), string(wire.KindMessage)
		var held protoreflect.MessageDescriptor
		if fd != nil {
			held, f.Type = fd.Message(), string(fd.Message().FullName())
		}
		v.base, v.cuts, v.Evidence, v.Choices = f.Val, v.cuts+1, nil, nil
		f.Fields = v.fieldsOf(sub, kind.NewReader(sub, nil), 0, held)
	case IsText(words):
		f.Kind, f.Type, f.Value = string(wire.KindString), string(wire.KindString), string(words)
	default:
		f.Kind, f.Type, f.Value = string(wire.KindBytes), string(wire.KindBytes), there
	}
	return f
}

// wholeRunes is b without a character at its end that is cut off.
func wholeRunes(b []byte) []byte {
	for k := len(b) - 1; k >= 0 && k > len(b)-utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) && !utf8.FullRune(b[k:]) {
			return b[:k]
		}
	}
	return b
}
