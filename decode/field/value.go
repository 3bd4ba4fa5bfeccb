package field

import (
	"encoding/base64"
	"math"
	"strconv"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// appendValue appends a Field's Value in the form of encoding/json.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendString(b, v)
	case []byte:
		// A nil slice is null in JSON, an empty one is an empty text.
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

	// Packed lists.
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

// appendList appends a JSON array, or null for a nil slice.
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

// appendBytes appends v as a JSON string in base64.
func appendBytes(b, v []byte) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, '"'), v)
	return append(b, '"')
}

// An Exact is a field's value whose JSON can be converted back to the same bits: unusual NaNs are written in hex,
// and a 32-bit float has only the digits that 32 bits need.
type Exact struct {
	// Kind decides whether Data is a string, a packed list or bytes, or whether the value is the number Bits.
	Kind wire.Kind

	// Type is the protobuf type of the number Bits or, for a packed list, "packed " and the type of its elements.
	Type string

	// Bits is the value of a number as its encoded bits; for other values it is not used.
	Bits uint64

	// Data is the payload of a string, of bytes or of a packed list; nil for a number.
	Data []byte
}

// AppendJSON appends the value as JSON without loss of precision.
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

// appendNumber appends bits as a number of the protobuf type typ. Unknown types are signed.
func appendNumber(b []byte, typ string, bits uint64) []byte {
	switch typ {
	case "float":
		return appendFloat(b, float64(math.Float32frombits(uint32(bits))), bits, 32)
	case "double":
		return appendFloat(b, math.Float64frombits(bits), bits, 64)
	case "bool":
		return strconv.AppendBool(b, bits != 0)
	case "sint32", "sint64":
		// Zigzag decoding.
		return strconv.AppendInt(b, int64(bits>>1)^-int64(bits&1), 10)
	case "sfixed32":
		return strconv.AppendInt(b, int64(int32(bits)), 10)
	case "varint", "uint32", "uint64", "fixed32", "fixed64":
		return strconv.AppendUint(b, bits, 10)
	}
	return strconv.AppendInt(b, int64(bits), 10)
}

// nan32 and nan64 are the bits of the usual NaN, which is written as "NaN".
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// appendFloat appends f, whose bits are bits. NaN and the infinities become strings, because JSON has no numbers
// for them. A NaN with other bits than usual becomes its bits in hex.
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

// appendFinite appends f with the fewest digits that distinguish it from other floats of the given
// width in bits.
func appendFinite(b []byte, f float64, width int) []byte {
	// Most numbers are probabilities with at most four decimals. Their shortest form is that decimal.
	if k := math.Round(f * 1e4); width == 64 && k >= 1 && k <= 1e4 && k/1e4 == f {
		return appendDecimals(b, int(k))
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, width)
}

// appendDecimals appends k/10000, for k from 1 to 10000, without zeros at its end.
func appendDecimals(b []byte, k int) []byte {
	if k == 10_000 {
		return append(b, '1')
	}
	b = append(b, "0."...)
	for unit := 1000; k > 0; unit /= 10 {
		b = append(b, byte('0'+k/unit))
		k %= unit
	}
	return b
}

// appendShortest appends f, a float of width bits, with the fewest digits and with the exponents of encoding/json:
// e-9 instead of e-09, and for 32 bits a switch to exponents at limits of 32-bit precision.
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
