package lexer

import (
	"bytes"
	"sort"
)

// An evaluated is a script in a string that its script hands to eval, as webpack
// writes each module in development: it is read in the string's place.
type evaluated struct {
	start, end uint32 // in what is read
	from       uint32 // the string, in the source
	next       uint32 // what follows it there
}

// leastEvaluated is the length of the shortest string of eval that is read, in
// bytes.
const leastEvaluated = 40

// Unevaluate returns a script with the strings that it hands to eval as code in
// their place. Nothing is evaluated. Offset returns where in src a byte of the result is:
// what was in a string is where that string is.
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
		if begin > 0 && (isWord(src[begin-1]) || src[begin-1] == '.') {
			continue
		}
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

// argument returns where the argument of a call of eval begins, and how many calls
// are open there: two with a policy for trusted types, as in
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

func isWord(c byte) bool {
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// closing returns where the string ends that a quote begins, or -1.
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

// sourceOffset returns where in the source a byte is, given the scripts that were in
// strings of it, in order.
func sourceOffset(list []evaluated, off uint32) uint32 {
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
