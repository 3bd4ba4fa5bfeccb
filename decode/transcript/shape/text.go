package shape

import (
	"unicode"
	"unicode/utf8"
)

// A textFit says how well bytes read as text.
type textFit uint8

const (
	Not textFit = iota // not text
	// text, but for a rune that is cut at the start or the end
	cutAtEdge
	Clean // text
)

// FitOf says how well b reads as text: UTF-8 whose runes are graphic, space or
// format characters, with line feed, return, tab and escape as the only
// controls, and at most one rune in twenty that Unicode does not assign.
// Empty bytes are Clean.
func FitOf(b []byte) textFit {
	head, tail := edges(b)
	if head+tail > 0 && head+tail >= len(b) {
		return cutAtEdge // the inside of a rune or two
	}
	if !isText(b[head : len(b)-tail]) {
		return Not
	}
	if head+tail > 0 {
		return cutAtEdge
	}
	return Clean
}

// edges returns how many bytes at the start of b continue a rune that began
// before it, and how many at its end begin one that goes on behind it.
func edges(b []byte) (head, tail int) {
	for head < len(b) && head < utf8.UTFMax-1 && !utf8.RuneStart(b[head]) {
		head++
	}
	for k := 1; k < utf8.UTFMax && k <= len(b)-head; k++ {
		c := b[len(b)-k]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-k:]) {
			tail = k
		}
		break
	}
	return head, tail
}

func isText(b []byte) bool {
	runes, odd := 0, 0
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b || c == 0x7f {
				return false
			}
			i++
			runes++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return false
		}
		if r < 0xa0 { // the second set of controls
			return false
		}
		if !unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) {
			odd++
		}
		i += n
		runes++
	}
	return odd*20 <= runes
}
