package decode

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/wire"
)

// declarationOf returns fd's type as in a .proto file: "repeated int32".
func declarationOf(fd protoreflect.FieldDescriptor) string {
	s := fd.Kind().String()
	if m := fd.Message(); m != nil {
		s = string(m.FullName())
	}
	if fd.IsList() {
		return "repeated " + s
	}
	return s
}

// DeclaredNumbers returns the value of node i of t, decoded by its declaration fd, if that is a fixed-size number
// or a packed list. ok is false for other types, for values that contradict fd, and if fd is nil.
func DeclaredNumbers(t *wire.Tree, i int32, fd protoreflect.FieldDescriptor) (v any, ok bool) {
	if fd == nil {
		return nil, false
	}
	var f field.Field
	ok = setDeclared(&f, t, i, fd)
	switch wire.Kind(f.Kind) {
	case wire.KindPacked, wire.KindFixed32, wire.KindFixed64:
		return f.Value, ok
	}
	return nil, false
}

// setDeclared decodes node i of t by its declaration fd and sets the result in f. It returns false if the wire type
// or the value contradicts the declaration.
func setDeclared(f *field.Field, t *wire.Tree, i int32, fd protoreflect.FieldDescriptor) bool {
	n := t.Node(i)
	is := fd.Kind()
	f.Type = is.String()
	switch {
	case n.Type == wire.StartGroup:
		f.Kind = string(wire.KindGroup)
		return is == protoreflect.GroupKind
	case n.Type != wire.Len:
		v, ok := scalar(is, n.Type, t.Uint(i))
		f.Kind, f.Value = scalarKind(n.Type), field.JSONValue(v)
		setSymbol(f, fd, v)
		return ok
	}

	// A Len node: message, string, bytes, or a packed list.
	switch is {
	case protoreflect.MessageKind:
		f.Kind, f.Type = string(wire.KindMessage), string(fd.Message().FullName())
		return t.IsMessage(i)
	case protoreflect.StringKind:
		f.Kind, f.Value = string(wire.KindString), string(t.Payload(i))
		return utf8.Valid(t.Payload(i))
	case protoreflect.BytesKind:
		f.Kind, f.Value = string(wire.KindBytes), t.Payload(i)
		return true
	}
	vs, ok := packed(is, t.Payload(i))
	f.Kind, f.Type, f.Value = string(wire.KindPacked), "packed "+f.Type, vs
	return ok && fd.IsList()
}

// setSymbol sets the name of the enum value v in f, if fd declares an enum with a name for it.
func setSymbol(f *field.Field, fd protoreflect.FieldDescriptor, v any) {
	number, ok := v.(int32)
	if e := fd.Enum(); e != nil && ok {
		if d := e.Values().ByNumber(protoreflect.EnumNumber(number)); d != nil {
			f.Symbol = string(d.Name())
		}
	}
}

// scalarKind returns unwire's name for the kind of a scalar with wire type t, as field.Field.Kind has it.
func scalarKind(t wire.Type) string {
	switch t {
	case wire.I32:
		return string(wire.KindFixed32)
	case wire.I64:
		return string(wire.KindFixed64)
	}
	return string(wire.KindVarint)
}

// scalar converts the bits u, which were parsed with wire type typ, to a Go value of the declared kind. ok is false
// if the kind is encoded with another wire type.
func scalar(kind protoreflect.Kind, typ wire.Type, u uint64) (v any, ok bool) {
	// want is the wire type that the declared kind requires.
	want := wire.Varint

	// The reading follows the declared kind, even if the wire type differs: the caller reports the
	// contradiction.
	switch kind {
	case protoreflect.BoolKind:
		v = u != 0
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		v = int32(u)
	case protoreflect.Int64Kind:
		v = int64(u)
	case protoreflect.Uint32Kind:
		v = uint32(u)
	case protoreflect.Uint64Kind:
		v = u
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		v = protowire.DecodeZigZag(u)
	case protoreflect.Fixed32Kind:
		v, want = uint32(u), wire.I32
	case protoreflect.Sfixed32Kind:
		v, want = int32(u), wire.I32
	case protoreflect.FloatKind:
		v, want = math.Float32frombits(uint32(u)), wire.I32
	case protoreflect.Fixed64Kind:
		v, want = u, wire.I64
	case protoreflect.Sfixed64Kind:
		v, want = int64(u), wire.I64
	case protoreflect.DoubleKind:
		v, want = math.Float64frombits(u), wire.I64
	default:
		return nil, false
	}

	return v, typ == want
}

// packed decodes the payload of a packed repeated field with elements of the declared kind. At the first malformed
// element it returns the elements before it and false.
func packed(is protoreflect.Kind, b []byte) ([]any, bool) {
	out := []any{}
	for len(b) > 0 {
		var u uint64
		n := 0
		typ := wire.Varint
		// Fixed-size numbers follow each other without a separator; varints delimit themselves.
		switch is {
		case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
			if typ = wire.I32; len(b) >= 4 {
				u, n = uint64(binary.LittleEndian.Uint32(b)), 4
			}
		case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
			if typ = wire.I64; len(b) >= 8 {
				u, n = binary.LittleEndian.Uint64(b), 8
			}
		default:
			u, n = wire.ConsumeVarint(b)
		}
		v, ok := scalar(is, typ, u)
		if n <= 0 || !ok {
			return out, false
		}
		out = append(out, field.JSONValue(v))
		b = b[n:]
	}

	return out, true
}
