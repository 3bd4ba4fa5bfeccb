package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// chosenText formats the number v of node c by the type that a user chose for it. Without a choice it returns
// unchosen.
func (p *printer) chosenText(c int32, v uint64, unchosen string) string {
	if chosen, _ := p.chosen(c); !chosen {
		return unchosen
	}
	_, typ, _ := p.r.Best(c)
	// A timestamp is printed as a number, and its time as a remark.
	if strings.HasPrefix(typ, "timestamp-") {
		return unchosen
	}
	return numberText(typ, v)
}

// packed prints the numbers of a packed field. typ is its type, such as "packed sint32".
func (p *printer) packed(data []byte, typ string) {
	sep, element := "", kind.ElementType(typ)
	for pos := 0; pos < len(data); {
		p.w.FlushFull()
		p.w.WriteString(sep)
		sep = " "
		var v uint64
		n := 0
		switch kind.ElementOf(typ) {
		case kind.PackedFixed32:
			n = 4
			v = wire.Fixed(data[pos : pos+n])
		case kind.PackedFixed64:
			n = 8
			v = wire.Fixed(data[pos : pos+n])
		default:
			v, n = wire.ConsumeVarint(data[pos:])
			p.long(n - wire.SizeVarint(v))
		}
		p.w.WriteString(numberText(element, v))
		pos += n
	}
}

// numberText formats the bits v as a number of protobuf type typ so that parseNumber restores the same bits.
func numberText(typ string, v uint64) string {
	switch typ {
	case "float":
		return fixedText(v, true, true)
	case "double":
		return fixedText(v, false, true)
	case "fixed32":
		return strconv.FormatUint(v, 10) + "i32"
	case "sfixed32":
		return strconv.FormatInt(int64(int32(v)), 10) + "i32"
	case "fixed64":
		return strconv.FormatUint(v, 10) + "i64"
	case "sfixed64":
		return strconv.FormatInt(int64(v), 10) + "i64"
	case "uint32", "uint64":
		return strconv.FormatUint(v, 10)
	case "sint32", "sint64":
		return strconv.FormatInt(unzigzag(v), 10) + "z"
	case "bool":
		return strconv.FormatBool(v != 0)
	}
	return strconv.FormatInt(int64(v), 10)
}

// fixedText formats a fixed value as a floating-point number if float is true and parsing restores the bits, and
// as an integer otherwise. narrow selects 32 bits.
func fixedText(v uint64, narrow, float bool) string {
	if narrow {
		f := math.Float32frombits(uint32(v))
		switch s := floatText(float64(f), 32); {
		case math.IsInf(float64(f), 0):
			return infText(float64(f)) + "32"
		case math.IsNaN(float64(f)):
			// There are many NaNs, so print the bits.
			return fmt.Sprintf("%#xi32", uint32(v))
		case float && s != "":
			return s + "i32"
		}
		return strconv.FormatInt(int64(int32(v)), 10) + "i32"
	}
	f := math.Float64frombits(v)
	switch s := floatText(f, 64); {
	case math.IsInf(f, 0):
		return infText(f) + "64"
	case math.IsNaN(f) && float:
		return fmt.Sprintf("%#xi64", v)
	case float && s != "":
		return s
	}
	return strconv.FormatInt(int64(v), 10) + "i64"
}

// infText formats plus or minus infinity.
func infText(f float64) string {
	if f < 0 {
		return "-inf"
	}
	return "inf"
}

// floatText formats a finite number and returns "" for others. As in Protoscope, the result always has a decimal
// point and never a plus sign.
func floatText(f float64, bits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	mantissa, exponent, scientific := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		return mantissa + "e" + strings.TrimPrefix(exponent, "+")
	}
	return mantissa
}
