package kind

import (
	"math"
	"slices"
	"strings"

	"unwire/decode/wire"
)

// packedPrefix begins the types of packed lists: "packed float".
const packedPrefix = "packed "

// packedElements are the types that a packed list's elements may have, with how they
// are on the wire. Those of 32 bits that are varints read as those of 64.
var packedElements = map[string]Element{
	"varint": PackedVarint, "int32": PackedVarint, "int64": PackedVarint, "uint32": PackedVarint, "uint64": PackedVarint,
	"sint32": PackedVarint, "sint64": PackedVarint, "bool": PackedVarint, "enum": PackedVarint,
	"fixed32": PackedFixed32, "sfixed32": PackedFixed32, "float": PackedFixed32,
	"fixed64": PackedFixed64, "sfixed64": PackedFixed64, "double": PackedFixed64,
}

// ElementType returns the type of the elements of a packed list of type typ: "float"
// of "packed float". It is "" for any other type.
func ElementType(typ string) string {
	if element, ok := strings.CutPrefix(typ, packedPrefix); ok && packedElements[element] != notPacked {
		return element
	}
	return ""
}

// ElementOf returns how the elements of a packed list of type typ are on the wire;
// notPacked for any other type.
func ElementOf(typ string) Element { return packedElements[ElementType(typ)] }

// packedType is the type of a field's payloads as packed lists of e: the numbers tell
// a float from an integer.
func packedType(f *Field, e Element) string {
	if e == PackedVarint {
		return packedPrefix + "varint"
	}
	return packedPrefix + NumberType(f, Judgement{Kind: wire.KindPacked, Element: e}, Use{}).Name
}

// fitsPacked reports whether data can be a packed list of type typ.
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

// notBool is where the first varint above 1 begins in data; len(data) if there is none.
func notBool(data []byte) int {
	for at := 0; at < len(data); at++ {
		if data[at] > 1 {
			return at
		}
	}
	return len(data)
}

// IsPackedVarint reports whether data is varints, none longer than it need be: their
// numbers alone tell the bytes.
func IsPackedVarint(data []byte) bool { return plainVarints(data) == len(data) }

// plainVarints is how many bytes from the beginning on are such varints.
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

// PackedValues returns the numbers in a payload that has a reading of the packed type
// typ, as they are on the wire: the bits of a float, zigzag as it is. Of other data it
// returns those before the place where it stops being that.
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

// packedList is a payload as the list that the packed type typ makes of it.
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

// listOf reads each element as a scalar of type element, whose values are of type T.
func listOf[T any](bits []uint64, element string) []T {
	out := make([]T, len(bits))
	for i, v := range bits {
		out[i], _ = scalarValue(v, element).(T)
	}
	return out
}

// JSONValue replaces what JSON has no numbers for: NaN and the infinities become
// strings, in a list too.
func JSONValue(v any) any {
	switch v := v.(type) {
	case float32:
		if s := notFinite(float64(v)); s != "" {
			return s
		}
	case float64:
		if s := notFinite(v); s != "" {
			return s
		}
	case []float32:
		return jsonList(v)
	case []float64:
		return jsonList(v)
	}
	return v
}

func jsonList[T float32 | float64](list []T) any {
	if !slices.ContainsFunc(list, func(f T) bool { return notFinite(float64(f)) != "" }) {
		return list
	}
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = JSONValue(f)
	}
	return out
}

// notFinite is the word for what is no number; "" for a number.
func notFinite(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return ""
}
