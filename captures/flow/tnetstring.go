package flow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Limits of one mitmproxy flow.
const (
	// maxFlow is the largest size of a flow in bytes, maxDepth the deepest nesting of lists and dictionaries,
	// and maxValues the largest number of values.
	maxFlow   = 512 << 20
	maxDepth  = 64
	maxValues = 1 << 20
	// maxDigits is the largest number of digits of a tnetstring's length.
	maxDigits = 12
	// maxNumber is the largest number of characters of a scalar value, such as an integer.
	maxNumber = 64
)

// A scanner reads a sequence of tnetstrings, the encoding of mitmproxy's flows:
//
//	length ':' payload type
//
// length is decimal. type is one of , (bytes) ; (text) # (integer) ^ (float) ! (boolean) ~ (null) ] (list) }
// (dictionary). The payload of a list or dictionary is a sequence of tnetstrings.
//
// Source: https://tnetstrings.info/
type scanner struct {
	// r reads the file of mitmproxy flows.
	r *bufio.Reader
	// off is the offset of the next value in the file, in bytes.
	off int64
}

// next returns the next value: []byte, string, int64, float64, bool, nil, []any or map[string]any. The value
// remains valid after further calls.
//
// Errors: io.EOF if the input ends between two values.
func (s *scanner) next() (any, error) {
	n, digits, err := s.length()
	if err != nil {
		return nil, err
	}
	// The buffer grows with the bytes that arrive: the declared length may be wrong.
	var buf bytes.Buffer
	got, err := io.CopyN(&buf, s.r, n+1)
	if err != nil {
		return nil, fmt.Errorf("a value of %d bytes is truncated after %d bytes: %w", n, got, io.ErrUnexpectedEOF)
	}
	p := parser{valuesLeft: maxValues, base: s.off + int64(digits) + 1}
	s.off += int64(digits) + 1 + n + 1
	b := buf.Bytes()
	return p.value(b[:n], b[n], 0, 0)
}

// length parses the decimal length and the colon at the beginning of a tnetstring. digits is the number of
// digits of the length.
func (s *scanner) length() (n int64, digits int, err error) {
	for {
		c, err := s.r.ReadByte()
		switch {
		case err != nil && digits == 0:
			return 0, 0, err
		case err != nil:
			return 0, 0, io.ErrUnexpectedEOF
		case c == ':' && digits > 0:
			if n > maxFlow {
				return 0, 0, fmt.Errorf("the flow has %d bytes, more than the limit of %d", n, maxFlow)
			}
			return n, digits, nil
		// Files may have line breaks between flows.
		case digits == 0 && (c == '\n' || c == '\r'):
			s.off++
			continue
		case c < '0' || c > '9' || digits == maxDigits:
			return 0, 0, fmt.Errorf("the length of a value is expected here, not %q", c)
		}
		n = n*10 + int64(c-'0')
		digits++
	}
}

// A parser decodes tnetstrings in memory.
type parser struct {
	// valuesLeft is the number of values that may still be decoded.
	valuesLeft int
	// base is the offset in the file of the bytes being parsed, for error messages.
	base int64
}

// errorAt returns a formatted error that begins with an offset in the file; at is relative to base.
func (p *parser) errorAt(at int, format string, args ...any) error {
	return fmt.Errorf("byte %d: %w", p.base+int64(at), fmt.Errorf(format, args...))
}

// value decodes the payload b of a tnetstring of type typ, the character that follows the payload. at is the
// offset of b relative to base, for errors, and depth the number of enclosing lists and dictionaries.
func (p *parser) value(b []byte, typ byte, at, depth int) (any, error) {
	if p.valuesLeft--; p.valuesLeft < 0 {
		return nil, p.errorAt(at, "the flow has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, p.errorAt(at, "lists and dictionaries are nested more than %d deep", maxDepth)
	}

	// Types that contain bytes or other values.
	switch typ {
	case ',':
		return b[:len(b):len(b)], nil
	case ';':
		return string(b), nil
	case ']':
		return p.list(b, at, depth)
	case '}':
		return p.dict(b, at, depth)
	case '~':
		if len(b) > 0 {
			return nil, p.errorAt(at, "a null value must be empty, but has %d bytes", len(b))
		}
		return nil, nil
	}

	// Scalars are short; check before converting.
	if len(b) > maxNumber {
		return nil, p.errorAt(at, "a number or boolean with %d bytes is too long", len(b))
	}
	var v any
	var err error
	switch typ {
	case '#':
		v, err = strconv.ParseInt(string(b), 10, 64)
	case '^':
		v, err = strconv.ParseFloat(string(b), 64)
	case '!':
		v = string(b) == "true"
		if s := string(b); s != "true" && s != "false" {
			err = strconv.ErrSyntax
		}
	default:
		return nil, p.errorAt(at+len(b), "%q is not a known type of value", typ)
	}
	if err != nil {
		return nil, p.errorAt(at, "%q: %w", b, strconv.ErrSyntax)
	}
	return v, nil
}

// element decodes the tnetstring at offset i of b, the payload of a list or dictionary, and returns the offset
// that follows. at is the offset of b relative to base, and depth the nesting depth.
func (p *parser) element(b []byte, i, at, depth int) (v any, end int, err error) {
	n, digits := 0, 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' && digits < maxDigits {
		n = n*10 + int(b[i]-'0')
		i++
		digits++
	}
	if digits == 0 || i == len(b) || b[i] != ':' {
		return nil, i, p.errorAt(at+i, "the length of a value is missing")
	}
	i++
	if n >= len(b)-i {
		return nil, i, p.errorAt(at+i, "a value claims to have %d bytes, but only %d bytes are left", n, len(b)-i)
	}
	v, err = p.value(b[i:i+n], b[i+n], at+i, depth)
	return v, i + n + 1, err
}

// list decodes the payload b of a tnetstring list. at is the offset of b relative to base, and depth the
// nesting depth.
func (p *parser) list(b []byte, at, depth int) (any, error) {
	list := []any{}
	for i := 0; i < len(b); {
		v, end, err := p.element(b, i, at, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		i = end
	}
	return list, nil
}

// dict decodes the payload b of a tnetstring dictionary. at is the offset of b relative to base, and depth the
// nesting depth.
func (p *parser) dict(b []byte, at, depth int) (any, error) {
	dict := make(map[string]any)
	for i := 0; i < len(b); {
		k, end, err := p.element(b, i, at, depth+1)
		if err != nil {
			return nil, err
		}
		key, ok := text(k)
		if !ok {
			return nil, p.errorAt(at+i, "a key of the dictionary is not text")
		}
		v, next, err := p.element(b, end, at, depth+1)
		if err != nil {
			return nil, err
		}
		dict[key] = v
		i = next
	}
	return dict, nil
}

// text converts a decoded value of either text type (bytes or Unicode text) to a string. Which of the two a
// member has depends on the version of mitmproxy.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}
