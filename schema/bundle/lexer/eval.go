package lexer

import (
	"bytes"
	"sort"
)

// An evaluated is a script inside a string literal that is passed to eval. webpack writes modules in this form
// in development mode. Offsets are in bytes.
type evaluated struct {
	// start is the offset of the script's first byte in the source in which calls of eval were replaced by their
	// code.
	start uint32

	// end is the offset after the script's last byte in that source.
	end uint32
	// from is the offset of the string literal in the original source.
	from uint32
	// next is the offset in the original source after the call of eval.
	next uint32
}

// leastEvaluated is the minimum length in bytes of a string literal that is replaced.
const leastEvaluated = 40

// Unevaluate replaces calls of eval with a string literal by the code in the string. Nothing is executed.
// offset converts an offset in out to one in src; for code from a string, it is the beginning of the string.
func Unevaluate(src []byte) (out []byte, offset func(off uint32) uint32) {
	word := []byte("eval(")
	same := func(off uint32) uint32 { return off }
	if !bytes.Contains(src, word) {
		return src, same
	}
	var list []evaluated
	out = make([]byte, 0, len(src)+1)
	done := 0
	for at := 0; ; {
		i := bytes.Index(src[at:], word)
		if i < 0 {
			break
		}
		begin := at + i
		at = begin + len(word)
		// This is another function whose name ends in eval.
		if begin > 0 && (isWord(src[begin-1]) || src[begin-1] == '.') {
			continue
		}

		// Only a single string literal is replaced.
		quote, calls := argument(src, at)
		if quote >= len(src) || src[quote] != '"' && src[quote] != '\'' || calls == 1 && quote > at {
			continue
		}
		end := closing(src, quote)
		if end < 0 || end-quote < leastEvaluated || !bytes.HasPrefix(src[end+1:], bytes.Repeat([]byte(")"), calls)) {
			continue
		}

		out = append(append(out, src[done:begin]...), '\n')
		done = end + 1 + calls
		e := evaluated{start: uint32(len(out)), from: uint32(quote), next: uint32(done)}
		out = append(append(out, Unquote(string(src[quote:end+1]))...), '\n')
		e.end = uint32(len(out))
		list = append(list, e)
		at = done
	}
	if list == nil {
		return src, same
	}
	return append(out, src[done:]...), func(off uint32) uint32 { return sourceOffset(list, off) }
}

// argument returns the offset of the string passed to eval, whose arguments begin at at, and the number of
// parentheses that are open there. There are two if the code uses trusted types:
// eval(__webpack_require__.ts("…")).
func argument(src []byte, at int) (quote, calls int) {
	quote, calls = at, 1
	for quote < len(src) && (isWord(src[quote]) || src[quote] == '.' || src[quote] == '(' && calls == 1 && quote > at) {
		if src[quote] == '(' {
			calls++
		}
		quote++
	}
	return quote, calls
}

// isWord reports whether c may be part of an ASCII identifier.
func isWord(c byte) bool {
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// closing returns the offset of the quote that ends the string literal beginning at quote, or -1.
func closing(src []byte, quote int) int {
	for i := quote + 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case src[quote]:
			return i
		}
	}
	return -1
}

// sourceOffset converts an offset in the result of Unevaluate to one in the original source. list are the
// replaced strings in order.
func sourceOffset(list []evaluated, off uint32) uint32 {
	// The last string that begins before the offset.
	i := sort.Search(len(list), func(i int) bool { return list[i].start > off }) - 1
	if i < 0 {
		return off
	}
	if e := list[i]; off < e.end {
		return e.from
	} else {
		return e.next + off - e.end
	}
}
