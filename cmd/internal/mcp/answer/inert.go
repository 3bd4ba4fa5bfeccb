package answer

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Inert returns a JSON text in which all characters that a reader cannot see, or that look like markup,
// are replaced by JSON escapes. These are control and format characters (such as those that reverse the
// direction of text), variation selectors and tag characters (which language models read although people
// do not see them), private and unassigned characters, and <, > and &. The decoded JSON stays the same.
func Inert(text []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r < utf8.RuneSelf && r >= ' ' && r != '<' && r != '>' && r != '&' && r != 0x7f {
			out.WriteByte(text[0])
		} else {
			writeInert(&out, r, text[:n])
		}
		text = text[n:]
	}
	return out.Bytes()
}

// writeInert writes a character, escaped if necessary. raw is its encoding. Line breaks are kept, since
// in JSON they occur only between values.
func writeInert(out *bytes.Buffer, r rune, raw []byte) {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		out.WriteByte(' ')
	case r == utf8.RuneError && len(raw) == 1:
		out.WriteString(`\ufffd`)
	case r < utf8.RuneSelf || !isVisible(r):
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			fmt.Fprintf(out, `\u%04x\u%04x`, high, low)
			return
		}
		fmt.Fprintf(out, `\u%04x`, r)
	default:
		out.Write(raw)
	}
}

// isVisible reports whether a non-ASCII character is printed as a glyph, unlike control or invisible
// characters.
func isVisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return false
	case r == 0x2800 || r == 0x3164 || r == 0xffa0: // blank letters
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) || r == 0x3000 || r == 0xa0
}
