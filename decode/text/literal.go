package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// literal reads a string, with the escapes of Protoscope.
func (p *parser) literal(quote byte) error {
	start := p.pos
	p.pos++
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == quote:
			p.pos++
			return p.noLong()
		case c == '\n':
			return p.fail("the string is not closed on its line")
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
			continue
		}
		p.body = append(p.body, c)
		p.pos++
	}
	p.pos = start
	return p.fail("this string is not closed")
}

// escape reads \n, \", \xff, \377 and the like.
func (p *parser) escape() error {
	p.pos++
	if p.pos >= len(p.src) {
		return p.fail("the text ends inside an escape")
	}
	c := p.src[p.pos]
	if k := strings.IndexByte(`nrtabfv0\"'?`, c); k >= 0 && c != '0' {
		p.body = append(p.body, "\n\r\t\a\b\f\v0\\\"'?"[k])
		p.pos++
		return nil
	}
	digits, base, n := 0, 8, 0
	switch {
	case c == 'x' || c == 'X':
		p.pos++
		digits, base = 2, 16
	case c >= '0' && c <= '3':
		digits = 3
	default:
		return p.fail("\\%c is no escape", c)
	}
	if p.pos+digits > len(p.src) {
		return p.fail("the text ends inside an escape")
	}
	v, err := strconv.ParseUint(string(p.src[p.pos:p.pos+digits]), base, 8)
	if err != nil {
		return p.fail("an escape of %d digits is expected", digits)
	}
	n += digits
	p.body = append(p.body, byte(v))
	p.pos += n
	return nil
}

// hexLiteral reads `0a ff`.
func (p *parser) hexLiteral() error {
	start := p.pos
	high, half := byte(0), false
	for p.pos++; p.pos < len(p.src); p.pos++ {
		c := p.src[p.pos]
		var d byte
		switch {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			d = c - 'A' + 10
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		case c == '`':
			if half {
				return p.fail("an odd number of hex digits")
			}
			p.pos++
			return p.noLong()
		default:
			return p.fail("%q is no hex digit", c)
		}
		if half {
			p.body = append(p.body, high<<4|d)
		}
		high, half = d, !half
	}
	p.pos = start
	return p.fail("this ` is not closed")
}

// A number is a literal with the wire type that its form has.
type number struct {
	typ  wire.Type
	bits uint64
}

// parseNumber reads 150, -5, 0x10, 5z, true, 1.5, 1.5i32, 7i32, 7i64, inf64.
func parseNumber(word string) (number, error) {
	if word == "" {
		return number{}, errors.New("a number is expected")
	}
	digits, typ := word, wire.Varint
	if s, ok := strings.CutSuffix(word, "i32"); ok {
		digits, typ = s, wire.I32
	} else if s, ok := strings.CutSuffix(word, "i64"); ok {
		digits, typ = s, wire.I64
	}
	switch word {
	case "true":
		return number{wire.Varint, 1}, nil
	case "false":
		return number{wire.Varint, 0}, nil
	case "inf32", "+inf32", "-inf32":
		return number{wire.I32, uint64(math.Float32bits(float32(infinity(word))))}, nil
	case "inf64", "+inf64", "-inf64":
		return number{wire.I64, math.Float64bits(infinity(word))}, nil
	}
	hexadecimal := strings.HasPrefix(strings.TrimLeft(digits, "+-"), "0x")
	if strings.Contains(digits, ".") || !hexadecimal && strings.ContainsAny(digits, "eE") || hexadecimal && strings.ContainsAny(digits, "pP") {
		return parseFloat(word, digits, typ)
	}
	if s, ok := strings.CutSuffix(digits, "z"); ok && typ == wire.Varint {
		v, err := strconv.ParseInt(s, 0, 64)
		if err != nil || strings.Contains(s, "_") {
			return number{}, fmt.Errorf("%.40q is no number", word)
		}
		return number{typ, uint64(v)<<1 ^ uint64(v>>63)}, nil
	}
	return parseInteger(word, digits, typ)
}

func infinity(word string) float64 {
	if word[0] == '-' {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

func parseFloat(word, digits string, typ wire.Type) (number, error) {
	size := 64
	if typ == wire.I32 {
		size = 32
	}
	f, err := strconv.ParseFloat(digits, size)
	if err != nil || strings.Contains(digits, "_") {
		return number{}, fmt.Errorf("%.40q is no number of %d bits", word, size)
	}
	if typ == wire.I32 {
		return number{typ, uint64(math.Float32bits(float32(f)))}, nil
	}
	return number{wire.I64, math.Float64bits(f)}, nil
}

// parseInteger reads an integer, signed or unsigned, that fits its type.
func parseInteger(word, digits string, typ wire.Type) (number, error) {
	size := 64
	if typ == wire.I32 {
		size = 32
	}
	// strconv takes 010 for octal and 0b1 for binary; Protoscope does not.
	base := 10
	plain := strings.TrimLeft(digits, "+-")
	if rest, ok := strings.CutPrefix(plain, "0x"); ok {
		plain, base = rest, 16
	}
	sign := digits[:len(digits)-len(strings.TrimLeft(digits, "+-"))]
	if sign == "-" {
		v, err := strconv.ParseInt("-"+plain, base, size)
		if err != nil {
			return number{}, fmt.Errorf("%.40q is no number of %d bits", word, size)
		}
		if typ == wire.I32 {
			return number{typ, uint64(uint32(v))}, nil
		}
		return number{typ, uint64(v)}, nil
	}
	v, err := strconv.ParseUint(plain, base, size)
	if err != nil || sign != "" && sign != "+" {
		return number{}, fmt.Errorf("%.40q is no number of %d bits", word, size)
	}
	return number{typ, v}, nil
}

// parseFieldNumber reads a field number, which may be one that is not allowed:
// up to 2^61-1 can be written on the wire.
func parseFieldNumber(word string) (uint64, error) {
	v, err := parseInteger(word, word, wire.Varint)
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(word, "-") || v.bits >= 1<<61 {
		return 0, errors.New("want 0 to 2^61-1")
	}
	return v.bits, nil
}
