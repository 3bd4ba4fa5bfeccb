package flow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Bounds of a flow.
const (
	maxFlow   = 512 << 20 // bytes
	maxDepth  = 64
	maxValues = 1 << 20
	maxDigits = 12 // of a length
	maxNumber = 64 // bytes of a number
)

// A scanner reads tnetstrings one after the other:
//
//	length ':' payload type
//
// with length in decimal digits and type one of , bytes ; text # integer
// ^ float ! boolean ~ null ] list } dictionary. The payload of the last two is
// tnetstrings again.
type scanner struct {
	r   *bufio.Reader
	off int64 // of the next one
}

// next returns the value that stands next: []byte, string, int64, float64,
// bool, nil, []any or map[string]any. Bytes alias a buffer of their own.
//
// Errors: io.EOF where the input ends between two values.
func (s *scanner) next() (any, error) {
	n, digits, err := s.length()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer // grows with what comes: the length is not believed
	got, err := io.CopyN(&buf, s.r, n+1)
	if err != nil {
		return nil, fmt.Errorf("a value of %d bytes ends after %d: %w", n, got, io.ErrUnexpectedEOF)
	}
	p := parser{left: maxValues, base: s.off + int64(digits) + 1}
	s.off += int64(digits) + 1 + n + 1
	b := buf.Bytes()
	return p.value(b[:n], b[n], 0, 0)
}

// length reads up to and including the colon.
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
				return 0, 0, fmt.Errorf("%d bytes, more than the limit of %d", n, maxFlow)
			}
			return n, digits, nil
		case digits == 0 && (c == '\n' || c == '\r'): // between two
			s.off++
			continue
		case c < '0' || c > '9' || digits == maxDigits:
			return 0, 0, fmt.Errorf("%q where a length was expected", c)
		}
		n = n*10 + int64(c-'0')
		digits++
	}
}

// A parser makes values of bytes in memory.
type parser struct {
	left int   // values that may still be made
	base int64 // of the bytes in the file, for errors
}

func (p *parser) fail(at int, format string, args ...any) error {
	return fmt.Errorf("byte %d: %w", p.base+int64(at), fmt.Errorf(format, args...))
}

// value reads the payload b of a type, which stands at an offset.
func (p *parser) value(b []byte, typ byte, at, depth int) (any, error) {
	if p.left--; p.left < 0 {
		return nil, p.fail(at, "more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, p.fail(at, "nested deeper than %d", maxDepth)
	}
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
			return nil, p.fail(at, "a null of %d bytes", len(b))
		}
		return nil, nil
	}
	if len(b) > maxNumber {
		return nil, p.fail(at, "a scalar of %d bytes", len(b))
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
		return nil, p.fail(at+len(b), "%q is no type", typ)
	}
	if err != nil {
		return nil, p.fail(at, "%q: %w", b, strconv.ErrSyntax)
	}
	return v, nil
}

// element reads the tnetstring that begins at offset i of b.
func (p *parser) element(b []byte, i, at, depth int) (v any, end int, err error) {
	n, digits := 0, 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' && digits < maxDigits {
		n = n*10 + int(b[i]-'0')
		i++
		digits++
	}
	if digits == 0 || i == len(b) || b[i] != ':' {
		return nil, i, p.fail(at+i, "no length")
	}
	i++
	if n >= len(b)-i {
		return nil, i, p.fail(at+i, "length %d, %d bytes left", n, len(b)-i)
	}
	v, err = p.value(b[i:i+n], b[i+n], at+i, depth)
	return v, i + n + 1, err
}

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

func (p *parser) dict(b []byte, at, depth int) (any, error) {
	dict := make(map[string]any)
	for i := 0; i < len(b); {
		k, end, err := p.element(b, i, at, depth+1)
		if err != nil {
			return nil, err
		}
		key, ok := text(k)
		if !ok {
			return nil, p.fail(at+i, "a key that is no text")
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

// text is the text of a value of either kind: which of them a member is has
// changed over the versions.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}
