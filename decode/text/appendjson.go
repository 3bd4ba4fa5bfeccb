package text

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"unwire/decode/kind"
)

// append writes a node as JSON, but for its closing brace; what is zero and
// optional is left out. Value is written by appendValue behind it.
func (j *node) appendJSON(b []byte) []byte {
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, j.N, 10)
	if j.Name != "" {
		b = appendString(append(b, `,"name":`...), j.Name)
	}
	b = append(append(append(b, `,"wire":"`...), j.Wire...), `","off":`...)
	b = strconv.AppendInt(b, int64(j.Off), 10)
	b = strconv.AppendInt(append(b, `,"len":`...), int64(j.Len), 10)
	b = append(append(append(b, `,"kind":"`...), j.Kind...), '"')
	if j.Type != "" {
		b = append(append(append(b, `,"type":"`...), j.Type...), '"')
	}
	if j.P != 0 {
		b = strconv.AppendFloat(append(b, `,"p":`...), j.P, 'f', -1, 64)
	}
	b = appendInt(b, `,"long_tag":`, j.LongTag)
	b = appendInt(b, `,"long_len":`, j.LongLen)
	b = appendInt(b, `,"long_value":`, j.LongValue)
	b = appendInt(b, `,"long_end":`, j.LongEnd)
	if j.Open {
		b = append(b, `,"open":true`...)
	}
	if j.chosen {
		b = append(b, `,"chosen":true`...)
	}
	if len(j.others) > 0 {
		b = append(b, `,"alternatives":[`...)
		for i, r := range j.others {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, `{"kind":"`...), r.Kind...), `","type":"`...)
			b = append(append(b, r.Type...), `","p":`...)
			b = append(strconv.AppendFloat(b, math.Round(r.P*1e4)/1e4, 'f', -1, 64), '}')
		}
		b = append(b, ']')
	}
	for _, m := range [...]struct{ name, text string }{{`,"form":`, j.remark.Form}, {`,"shape":`, j.remark.Shape}, {`,"note":`, j.remark.Note}} {
		if m.text != "" {
			b = appendString(append(b, m.name...), m.text)
		}
	}
	if j.remark.P > 0 {
		b = strconv.AppendFloat(append(b, `,"shape_p":`...), j.remark.P, 'f', -1, 64)
	}
	if j.Error != "" {
		b = appendString(append(b, `,"error":`...), j.Error)
	}
	return b
}

// appendInt writes a member unless it is zero.
func appendInt(b []byte, member string, v int) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(append(b, member...), int64(v), 10)
}

// appendValue writes a value that a field has in JSON.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case numberValue:
		return appendNumber(b, v.typ, v.bits)
	case textValue:
		return appendString(b, v)
	case packedValue:
		b = append(b, '[')
		for i, bits := range kind.PackedValues(v.typ, v.data) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNumber(b, kind.ElementType(v.typ), bits)
		}
		return append(b, ']')
	case []byte:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v)
		return append(b, '"')
	}
	return append(b, "null"...)
}

// A textValue is the bytes of a string, which are UTF-8.
type textValue []byte

// A numberValue is a number by its bits and the type that they are read as.
type numberValue struct {
	typ  string
	bits uint64
}

// A packedValue is a payload that is a packed list of type typ.
type packedValue struct {
	typ  string
	data []byte
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
		return strconv.AppendInt(b, unzigzag(bits), 10)
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

func appendFinite(b []byte, f float64, bits int) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, bits)
}

// appendString writes a string of JSON. Only what has to be is escaped, and the
// two line separators that JavaScript does not have in strings.
func appendString[T string | textValue](b []byte, s T) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, `\u00`...)
				b = append(b, digits[c>>4], digits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := decodeRune(s, i)
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
			b = append(b, s[from:i]...)
			if n == 1 {
				r = utf8.RuneError
			}
			b = append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
			from = i + n
		}
		i += n
	}
	return append(append(b, s[from:]...), '"')
}

func decodeRune[T string | textValue](s T, i int) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], s[i:min(i+utf8.UTFMax, len(s))])
	return utf8.DecodeRune(buf[:n])
}
