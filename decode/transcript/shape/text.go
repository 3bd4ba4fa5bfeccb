package shape

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// A textFit is the result of judging whether bytes are text.
type textFit uint8

const (
	Not textFit = iota // not text

	// cutAtEdge is text with an incomplete character at the beginning or the end.
	cutAtEdge
	Clean // text
)

// FitOf reports whether b is text. Text is UTF-8 whose characters are graphic, space or format characters. The only
// control characters are line feed, carriage return, tab and escape, and at most one character in twenty is not
// assigned by Unicode. Empty bytes are Clean.
func FitOf(b []byte) textFit {
	head, tail := edges(b)
	if head+tail > 0 && head+tail >= len(b) {
		// Only parts of one or two runes.
		return cutAtEdge
	}
	if !isText(b[head : len(b)-tail]) {
		return Not
	}
	if head+tail > 0 {
		return cutAtEdge
	}
	return Clean
}

// edges returns the number of bytes at the beginning of b that belong to a character that began before b, and the
// number at its end that begin an incomplete character.
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

// isText reports whether b is text as FitOf describes it.
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
		// These are the C1 control characters.
		if r < 0xa0 {
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

// prefixSize is the size in bytes of the length before a text.
const prefixSize = 4

// Prefixed returns the text in b if that is texts of which each has its length before it, as 32 bits in either byte
// order, as tensors of bytes have. Otherwise it returns nil.
func Prefixed(b []byte) []byte {
	for _, order := range [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		var out []byte
		rest := b
		for len(rest) > prefixSize {
			n := uint64(order.Uint32(rest))
			if n > uint64(len(rest)-prefixSize) {
				break
			}
			out, rest = append(out, rest[prefixSize:prefixSize+n]...), rest[prefixSize+n:]
		}
		if len(rest) == 0 && len(out) > 0 && FitOf(out) != Not {
			return out
		}
	}
	return nil
}
