package text

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// literal parses a string between quotes with the escapes of Protoscope, and appends its bytes.
func (p *parser) literal(quote byte) error {
	start := p.pos
	p.pos++
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == quote:
			p.pos++
			return p.noLong()
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
			continue
		}
		// Copy everything up to the next escape at once.
		run := p.pos + 1
		for run < len(p.src) && p.src[run] != quote && p.src[run] != '\\' {
			run++
		}
		p.body = append(p.body, p.src[p.pos:run]...)
		p.pos = run
	}

	p.pos = start
	return p.advise("end the string with the quote that begins it; to write a quote inside it, put a backslash in front: \\"+string(quote), "the string has no closing quote")
}

// escape parses an escape: \n, \", \xff, \377 and others.
func (p *parser) escape() error {
	start := p.pos
	p.pos++
	if p.pos >= len(p.src) {
		return p.fail("the text ends inside an escape")
	}
	c := p.src[p.pos]

	// The simple escapes are those of C, in the order of the bytes that they stand for.
	if k := strings.IndexByte(`nrtabfv\"'?`, c); k >= 0 {
		p.body = append(p.body, "\n\r\t\a\b\f\v\\\"'?"[k])
		p.pos++
		return nil
	}

	// Hexadecimal escapes have two digits, octal ones up to three.
	end, base := p.pos, 8
	switch {
	case c == 'x' || c == 'X':
		p.pos++
		base, end = 16, min(p.pos+2, len(p.src))
	case c >= '0' && c <= '7':
		for end < len(p.src) && end < p.pos+3 && p.src[end] >= '0' && p.src[end] <= '7' {
			end++
		}
	default:
		p.pos = start
		return p.advise("the escapes are \\n \\r \\t \\\\ \\\", \\x with two hex digits, and \\ with one to three octal digits", "\\%c is not an escape", c)
	}

	// ParseUint takes fewer hexadecimal digits than two, which would make the escape ambiguous.
	v, err := strconv.ParseUint(string(p.src[p.pos:end]), base, 8)
	if err != nil || base == 16 && end != p.pos+2 {
		found := p.src[start:end]
		p.pos = start
		return p.advise("", "%q is not an escape: write \\x and two hex digits, or \\ and one to three octal digits up to \\377", found)
	}
	p.body = append(p.body, byte(v))
	p.pos = end
	return nil
}

// hexLiteral parses hex digits between backquotes, as in `0a ff`, and appends the bytes.
func (p *parser) hexLiteral() error {
	start := p.pos
	high, half := byte(0), false
	// Two digits make a byte; white space is allowed anywhere.
	for p.pos++; p.pos < len(p.src); p.pos++ {
		c := p.src[p.pos]
		d, ok := hexDigit(c)
		switch {
		case ok:
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		case c == '`':
			if half {
				return p.fail("the number of hex digits is odd")
			}
			p.pos++
			return p.noLong()
		default:
			return p.advise("backquotes enclose hex digits; spaces between the digits are allowed", "%q is not a hex digit", c)
		}
		if half {
			p.body = append(p.body, high<<4|d)
		}
		high, half = d, !half
	}

	p.pos = start
	return p.fail("the closing ` is missing")
}

// A number is a parsed number, with the wire type that its notation implies.
type number struct {
	// typ is the wire type that the notation implies: Varint, I32 or I64.
	typ wire.Type

	// bits is the encoded value; of I32, only the lower 32 bits are used.
	bits uint64
}

// suffixOf splits a number into digits and suffix: z for zigzag, i32 and i64 for fixed sizes.
func suffixOf(word []byte) (digits, suffix []byte) {
	n := len(word)
	switch {
	case n > 1 && word[n-1] == 'z':
		return word[:n-1], word[n-1:]
	case n > 3 && word[n-3] == 'i' && (word[n-2] == '3' && word[n-1] == '2' || word[n-2] == '6' && word[n-1] == '4'):
		return word[:n-3], word[n-3:]
	}
	return word, nil
}

// isFloatText reports whether digits are those of a floating-point number: 1.5, 1e9, 0x1.8p3.
func isFloatText(digits []byte) bool {
	hexadecimal := bytes.HasPrefix(bytes.TrimLeft(digits, "+-"), []byte("0x"))
	for _, c := range digits {
		switch {
		case c == '.', !hexadecimal && (c == 'e' || c == 'E'), hexadecimal && (c == 'p' || c == 'P'):
			return true
		}
	}
	return false
}

// typeOfNumber returns the wire type that a number's notation implies. For other words it returns Varint.
func typeOfNumber(word []byte) wire.Type {
	switch string(word) {
	case "inf32", "+inf32", "-inf32":
		return wire.I32
	case "inf64", "+inf64", "-inf64":
		return wire.I64
	}
	digits, suffix := suffixOf(word)
	switch {
	case string(suffix) == "i32":
		return wire.I32
	case string(suffix) == "i64":
		return wire.I64
	case len(suffix) == 0 && len(digits) > 0 && isFloatText(digits) && digits[0] <= '9':
		return wire.I64
	}
	return wire.Varint
}

// parseNumber parses 150, -5, 0x10, 5z, true, 1.5, 1.5i32, 7i32, 7i64 or inf64.
func parseNumber(word []byte) (number, error) {
	// These words have no digits, so they are handled first.
	switch string(word) {
	case "":
		return number{}, errors.New("a number is missing")
	case "true":
		return number{wire.Varint, 1}, nil
	case "false":
		return number{wire.Varint, 0}, nil
	case "inf32", "+inf32", "-inf32":
		return number{wire.I32, uint64(math.Float32bits(float32(infinity(word))))}, nil
	case "inf64", "+inf64", "-inf64":
		return number{wire.I64, math.Float64bits(infinity(word))}, nil
	}
	digits, suffix := suffixOf(word)
	typ := typeOfNumber(word)

	// The suffix z selects ZigZag encoding, the encoding of sint32 and sint64.
	if string(suffix) == "z" {
		v, err := parseInteger(digits, 64)
		if err != nil {
			return number{}, fmt.Errorf("%.40q is not a number", word)
		}
		return number{typ, v<<1 ^ uint64(int64(v)>>63)}, nil
	}

	// Range checks depend on the size of the wire type.
	size := 64
	if typ == wire.I32 {
		size = 32
	}
	var v uint64
	var err error
	if isFloatText(digits) {
		v, err = parseFloat(digits, size)
	} else {
		v, err = parseInteger(digits, size)
	}
	if err != nil {
		if c := word[0] | 0x20; c >= 'a' && c <= 'z' {
			return number{}, fmt.Errorf("%.40q is neither a field, nor a number, nor a text in quotes", word)
		}
		return number{}, fmt.Errorf("%.40q is not a number of %d bits", word, size)
	}
	return number{typ, v}, nil
}

// infinity returns plus or minus infinity, depending on whether word begins with a minus sign.
func infinity(word []byte) float64 {
	if word[0] == '-' {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// parseFloat returns the bits of a floating-point number. The exponent of a hexadecimal one is optional.
func parseFloat(digits []byte, size int) (uint64, error) {
	s := string(digits)
	if strings.Contains(s, "_") || strings.ContainsAny(s, "nN") {
		return 0, strconv.ErrSyntax
	}
	if strings.Contains(s, "0x") && !strings.ContainsAny(s, "pP") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, size)
	if err != nil {
		return 0, err
	}
	if size == 32 {
		return uint64(math.Float32bits(float32(f))), nil
	}
	return math.Float64bits(f), nil
}

// parseInteger parses an integer, signed or unsigned, of at most size bits. 010 is ten, as in Protoscope.
func parseInteger(digits []byte, size int) (uint64, error) {
	negative := false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	base := uint64(10)
	if len(digits) > 1 && digits[0] == '0' && digits[1] == 'x' {
		base, digits = 16, digits[2:]
	}
	if len(digits) == 0 {
		return 0, strconv.ErrSyntax
	}
	var v uint64
	for _, c := range digits {
		d, ok := hexDigit(c)
		if !ok || uint64(d) >= base {
			return 0, strconv.ErrSyntax
		}
		// Detect overflow of 64 bits.
		hi, lo := bits.Mul64(v, base)
		sum, carry := bits.Add64(lo, uint64(d), 0)
		if hi != 0 || carry != 0 {
			return 0, strconv.ErrRange
		}
		v = sum
	}

	// Negative numbers wrap around, as protobuf encodes them.
	if negative {
		if v > 1<<(size-1) {
			return 0, strconv.ErrRange
		}
		v = -v
	} else if size == 32 && v > math.MaxUint32 {
		return 0, strconv.ErrRange
	}
	if size == 32 {
		v = uint64(uint32(v))
	}
	return v, nil
}

// hexDigit returns the value of a hex digit; ok is false for other characters.
func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// parseFieldNumber parses a field number, including numbers that protobuf does not allow: any that leaves three
// bits of a tag for the wire type. With the suffix z, the whole tag is in zigzag encoding.
func parseFieldNumber(word []byte) (number uint64, zigzag bool, err error) {
	digits, suffix := suffixOf(word)
	v, err := parseInteger(digits, 64)
	top := int64(v) >> 61
	switch {
	case err != nil && err != strconv.ErrRange:
		return 0, false, errors.New("a field number must be an integer")
	case len(suffix) > 1:
		return 0, false, errors.New("a field number cannot have a width suffix")
	case err != nil || top != 0 && top != -1:
		return 0, false, errors.New("a field number must be from -2^61 to 2^61-1")
	}
	return v, len(suffix) == 1, nil
}
