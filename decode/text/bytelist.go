package text

import (
	"bytes"
	"errors"
	"strconv"
)

// errNoList is returned if the input is not a list of bytes.
var errNoList = errors.New("the input is not a list of bytes")

// readMarked reads hex with a mark before each byte or group of bytes: 0x0a, 0x05 or \x0a\x05. Commas, braces
// and quotes may surround them.
func readMarked(in []byte) ([]byte, error) {
	var out []byte
	for len(in) > 0 {
		switch {
		case bytes.IndexByte([]byte(" \t\r\n,;{}[]\"'"), in[0]) >= 0:
			in = in[1:]
		case len(in) > 2 && (in[0] == '0' || in[0] == '\\') && (in[1] == 'x' || in[1] == 'X'):
			n := 2
			for n < len(in) {
				if _, ok := hexDigit(in[n]); !ok {
					break
				}
				n++
			}
			// All digits behind one mark belong to a group.

			// The digits must be pairs, because a byte has two.
			b, err := hexPairs(in[2:n])
			if err != nil || len(b) == 0 {
				return nil, errors.New("0x or \\x must be followed by two hex digits")
			}
			out = append(out, b...)
			in = in[n:]
		default:
			return nil, errors.New("a byte must begin with 0x or \\x")
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the list is empty")
	}
	return out, nil
}

// readSeparated reads hex with a separator, such as 0a:05:68 and 0A-05-68.
func readSeparated(in []byte) ([]byte, error) {
	in = bytes.TrimSpace(in)
	if len(in) < 5 || in[2] != ':' && in[2] != '-' {
		return nil, errNoList
	}

	// The first separator decides, and all others must equal it.
	sep := in[2]
	out := make([]byte, 0, len(in)/3+1)
	for len(in) > 0 {
		if len(in) < 2 {
			return nil, errNoList
		}
		b, err := hexPairs(in[:2])
		if err != nil {
			return nil, err
		}
		out = append(out, b[0])
		if in = in[2:]; len(in) == 0 {
			break
		}
		if in[0] != sep {
			return nil, errNoList
		}
		if in = bytes.TrimLeft(in[1:], " \r\n\t"); len(in) == 0 {
			// A line that ends with the separator.
			break
		}
	}
	return out, nil
}

// isSource reports whether in is a list or string in the syntax of a programming language. Other data has the
// same form, so the caller must check whether the bytes make sense.
func isSource(in []byte) bool {
	if _, err := readMarked(in); err == nil {
		return false
	}
	for _, read := range []func([]byte) ([]byte, error){readSeparated, readList, readLiteral} {
		if _, err := read(in); err == nil {
			return true
		}
	}
	return false
}

// readList reads an array of numbers: of C, xxd -i, Go, Rust and JSON, Uint8Array(3) [ 8, 1, 16 ] and <Buffer 08
// 01 10> of JavaScript, and Java's with negative numbers.
func readList(in []byte) ([]byte, error) {
	s := bytes.TrimSpace(in)
	if rest, ok := bytes.CutPrefix(s, []byte("<Buffer ")); ok {
		rest, ok = bytes.CutSuffix(rest, []byte(">"))
		if !ok {
			return nil, errNoList
		}
		return hexPairs(bytes.ReplaceAll(rest, []byte(" "), nil))
	}

	// Skip the declaration in front of the elements, such as "unsigned char m[] = {".
	open := declarationEnd(s)
	if open < 0 {
		return nil, errNoList
	}
	s = s[open+1:]
	end := bytes.IndexAny(s, "}])")
	if end < 0 || !isTail(s[end:]) {
		return nil, errNoList
	}
	var out []byte
	for item := range bytes.SplitSeq(s[:end], []byte(",")) {
		word := string(bytes.TrimSpace(item))
		if word == "" && len(out) > 0 {
			// A comma may follow the last element.
			continue
		}
		v, err := strconv.ParseInt(word, 0, 16)
		if err != nil || v < -128 || v > 255 {
			return nil, errNoList
		}
		out = append(out, byte(v))
	}
	// A single number in brackets is more likely something else.
	if len(out) < 2 {
		return nil, errNoList
	}
	return out, nil
}

// declarationEnd returns the offset of the bracket before an array's first element in source code, or -1.
func declarationEnd(s []byte) int {
	const most = 200
	// A bracket counts if a number and then a comma or the end of the array follow.
	open := -1
	for i, c := range s[:min(len(s), most)] {
		switch {
		case c == '{' || c == '[' || c == '(':
			open = i
		case open >= 0 && (c == '-' || c == ' ' || c == '\n' || c == '\r' || c == '\t'):
		case open >= 0 && c >= '0' && c <= '9':
			// A number in brackets without a comma behind it is a size, as in m[41] = {.
			j := i
			for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] == 'x' || s[j] >= 'a' && s[j] <= 'f' || s[j] >= 'A' && s[j] <= 'F') {
				j++
			}
			k := j + len(s[j:]) - len(bytes.TrimLeft(s[j:], " \t\r\n"))
			if k < len(s) && (s[k] == ',' || (s[k] == '}' || s[k] == ']') && isTail(s[k:])) {
				return open
			}
			open = -1
		case c == '\n' || c == '"' || c == '\'' || c < ' ' && c != '\t' || c > '~':
			return -1
		default:
			open = -1
		}
	}

	return -1
}

// isTail reports whether s may follow an array's elements in source code: brackets, a semicolon, and the length
// that xxd -i prints.
func isTail(s []byte) bool {
	s = bytes.TrimLeft(s, "}]) \t\r\n;,")
	if len(s) == 0 {
		return true
	}
	rest, ok := bytes.CutPrefix(s, []byte("unsigned int "))
	if !ok || bytes.IndexByte(rest, '\n') >= 0 && len(bytes.TrimSpace(rest[bytes.IndexByte(rest, '\n'):])) > 0 {
		return false
	}
	return bytes.Contains(rest, []byte("_len = "))
}

// readLiteral reads quoted strings with escapes: b'\n\x05hello' as Python prints bytes, "\n\005hello" as C and
// protoc do. Adjacent strings are joined.
func readLiteral(in []byte) ([]byte, error) {
	s := bytes.TrimSpace(in)
	p := &parser{}
	escaped := false
	for len(s) > 0 {
		// Python's prefix.
		if s[0] == 'b' && len(s) > 1 {
			s = s[1:]
		}
		if s[0] != '"' && s[0] != '\'' {
			return nil, errNoList
		}
		quote := s[0]

		// Find the end of the string, then use the parser of this package for its escapes.
		end := 1
		for end < len(s) && s[end] != quote {
			switch c := s[end]; {
			case c == '\\':
				escaped = true
				end++
			case c < ' ':
				return nil, errNoList
			}
			end++
		}
		if end >= len(s) {
			return nil, errNoList
		}
		p.src, p.pos = s[:end+1], 0
		if p.literal(quote) != nil {
			return nil, errNoList
		}
		s = bytes.TrimLeft(s[end+1:], " \t\r\n;,)")
	}
	// A string without escapes is ordinary text.
	if !escaped {
		return nil, errNoList
	}
	return p.body, nil
}
