package kind

import (
	"strings"

	"unwire/decode/wire"
)

// packedPrefix is the beginning of the names of packed types, as in "packed float".
const packedPrefix = "packed "

// packedElements are the types of elements of packed lists, with their encodings.
var packedElements = map[string]Element{
	"varint": PackedVarint, "int32": PackedVarint, "int64": PackedVarint, "uint32": PackedVarint, "uint64": PackedVarint,
	"sint32": PackedVarint, "sint64": PackedVarint, "bool": PackedVarint, "enum": PackedVarint,
	"fixed32": PackedFixed32, "sfixed32": PackedFixed32, "float": PackedFixed32,
	"fixed64": PackedFixed64, "sfixed64": PackedFixed64, "double": PackedFixed64,
}

// ElementType returns the type of the elements of packed type typ: "float" for "packed float". It returns "" for
// other types.
func ElementType(typ string) string {
	if element, ok := strings.CutPrefix(typ, packedPrefix); ok && packedElements[element] != notPacked {
		return element
	}
	return ""
}

// ElementOf returns the encoding of the elements of packed type typ, or notPacked for other types.
func ElementOf(typ string) Element { return packedElements[ElementType(typ)] }

// packedType returns the packed type of a field whose elements have the encoding e. The numbers decide between
// floating point and integers.
func packedType(f *Field, e Element) string {
	if e == PackedVarint {
		return packedPrefix + "varint"
	}
	return packedPrefix + NumberType(f, Judgement{Kind: wire.KindPacked, Element: e}, Use{}).Name
}

// fitsPacked reports whether data is a valid packed list of type typ.
func fitsPacked(typ string, data []byte) bool {
	switch ElementOf(typ) {
	case PackedFixed32:
		return len(data)%4 == 0
	case PackedFixed64:
		return len(data)%8 == 0
	case PackedVarint:
		return IsPackedVarint(data) && (ElementType(typ) != "bool" || notBool(data) == len(data))
	}
	return false
}

// notBool returns the offset in data of the first varint above 1, which cannot be a bool, or len(data).
func notBool(data []byte) int {
	for at := 0; at < len(data); at++ {
		if data[at] > 1 {
			return at
		}
	}
	return len(data)
}

// IsPackedVarint reports whether data consists of minimally encoded varints. Then the numbers determine the
// bytes.
func IsPackedVarint(data []byte) bool { return plainVarints(data) == len(data) }

// plainVarints returns the size in bytes of the minimally encoded varints at the beginning of data.
func plainVarints(data []byte) int {
	at := 0
	for at < len(data) {
		v, size := wire.ConsumeVarint(data[at:])
		if size <= 0 || size != wire.SizeVarint(v) {
			break
		}
		at += size
	}
	return at
}

// PackedValues returns the elements of a packed list as they are encoded: the bits of a float, zigzag numbers
// without decoding. If data is malformed, it returns the elements before the violation.
func PackedValues(typ string, data []byte) []uint64 {
	width := 0
	switch ElementOf(typ) {
	case PackedFixed32:
		width = 4
	case PackedFixed64:
		width = 8
	}
	vs := []uint64{}
	for len(data) >= max(width, 1) {
		// A varint has no fixed width.
		n := width
		v := uint64(0)
		if n > 0 {
			v = wire.Fixed(data[:n])
		} else if v, n = wire.ConsumeVarint(data); n <= 0 {
			break
		}
		vs, data = append(vs, v), data[n:]
	}
	return vs
}

// packedList returns the decoded elements of a packed list of type typ, as a slice of the elements' Go type.
func packedList(typ string, data []byte) any {
	bits, element := PackedValues(typ, data), ElementType(typ)
	switch element {
	case "int32", "int64", "sint32", "sint64", "enum", "sfixed32", "sfixed64":
		return listOf[int64](bits, element)
	case "bool":
		return listOf[bool](bits, element)
	case "float":
		return listOf[float32](bits, element)
	case "double":
		return listOf[float64](bits, element)
	}
	return bits
}

// listOf decodes each of the encoded bits as a scalar of the protobuf type element, whose Go type is T.
func listOf[T any](bits []uint64, element string) []T {
	out := make([]T, len(bits))
	for i, v := range bits {
		out[i], _ = scalarValue(v, element).(T)
	}
	return out
}
