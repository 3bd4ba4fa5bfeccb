package field

import (
	"encoding/base64"
	"math"
	"strconv"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// appendValue writes a field's Value as encoding/json does.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendString(b, v)
	case []byte:
		if v == nil {
			return append(b, "null"...)
		}
		return appendBytes(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int32:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint32:
		return strconv.AppendUint(b, uint64(v), 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float32:
		return appendShortest(b, float64(v), 32)
	case float64:
		return appendShortest(b, v, 64)
	case []int64:
		return appendList(b, v)
	case []uint64:
		return appendList(b, v)
	case []bool:
		return appendList(b, v)
	case []float32:
		return appendList(b, v)
	case []float64:
		return appendList(b, v)
	case []any:
		return appendList(b, v)
	}
	return append(b, "null"...)
}

func appendList[T any](b []byte, list []T) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}

func appendBytes(b, v []byte) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, '"'), v)
	return append(b, '"')
}

// An Exact is a value by its bits or bytes. Its JSON gives them back: NaN with
// another payload than the usual one is its bits in hex, and a float of 32 bits has
// the digits that 32 bits need.
type Exact struct {
	// Kind decides whether a value with Data is a string, a packed list, or bytes.
	Kind wire.Kind

	// Type is how Bits, or the elements of a packed list, are read.
	Type string

	// Bits is a number; Data is any other value.
	Bits uint64
	Data []byte
}

// AppendJSON writes the value.
func (e Exact) AppendJSON(b []byte) []byte {
	switch e.Kind {
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
		return appendNumber(b, e.Type, e.Bits)
	case wire.KindString:
		return appendEscaped(b, e.Data, false)
	case wire.KindPacked:
		b = append(b, '[')
		for i, bits := range kind.PackedValues(e.Type, e.Data) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNumber(b, kind.ElementType(e.Type), bits)
		}
		return append(b, ']')
	}
	return appendBytes(b, e.Data)
}

// appendNumber writes a number as its type has it, in a form that gives the bits back.
func appendNumber(b []byte, typ string, bits uint64) []byte {
	switch typ {
	case "float":
		return appendFloat(b, float64(math.Float32frombits(uint32(bits))), bits, 32)
	case "double":
		return appendFloat(b, math.Float64frombits(bits), bits, 64)
	case "bool":
		return strconv.AppendBool(b, bits != 0)
	case "sint32", "sint64":
		return strconv.AppendInt(b, int64(bits>>1)^-int64(bits&1), 10)
	case "sfixed32":
		return strconv.AppendInt(b, int64(int32(bits)), 10)
	case "varint", "uint32", "uint64", "fixed32", "fixed64":
		return strconv.AppendUint(b, bits, 10)
	}
	return strconv.AppendInt(b, int64(bits), 10)
}

// The bits of the NaN that the word NaN stands for.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// appendFloat writes f, whose bits are given. JSON has no number for NaN and the
// infinities: they are words, and a NaN with other bits is its bits in hex.
func appendFloat(b []byte, f float64, bits uint64, width int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	case math.IsNaN(f) && (width == 32 && bits == nan32 || width == 64 && bits == nan64):
		return append(b, `"NaN"`...)
	case math.IsNaN(f):
		return append(strconv.AppendUint(append(b, `"0x`...), bits, 16), '"')
	}
	return appendFinite(b, f, width)
}

func appendFinite(b []byte, f float64, width int) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, width)
}

// appendShortest is appendFinite as encoding/json writes numbers: e-9 for e-09, and
// the exponent of 32 bits by what 32 bits can tell.
func appendShortest(b []byte, f float64, width int) []byte {
	abs, format := math.Abs(f), byte('f')
	if width == 32 {
		if abs != 0 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	} else if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, width)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b = append(b[:n-2], b[n-1])
	}
	return b
}
