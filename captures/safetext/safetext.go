// Package safetext escapes the characters of foreign text that drive a terminal, turn the direction of writing, or end
// a line where none ends: control characters (C0, DEL and C1), bidirectional controls, and the separators of lines and
// paragraphs. All sinks use it: the terminal, tables, JSON, and comments in .proto files.
//
//	safetext.Line("a\x1b[2J\u202eb\n") // a\x1b[2J\u202eb\n, as escapes
//	safetext.JSON([]byte(`{"a":"…"}`)) // the same value
//
// HTML and Markdown escape their own characters in addition.
package safetext

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsUnsafe reports whether a character must be escaped before it is shown on a terminal, such as a control
// character.
func IsUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Line escapes untrusted text for one line of terminal output: unsafe characters and invalid UTF-8.
func Line(s string) string {
	// Most text is printable ASCII.
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
		i++
	}
	if !strings.ContainsFunc(s[i:], IsUnsafe) && utf8.ValidString(s[i:]) {
		return s
	}
	return escape(s, "")
}

// Lines escapes unsafe characters and invalid UTF-8 in untrusted text, but keeps newlines and tabs.
func Lines(s string) string { return escape(s, "\n\t") }

// escape escapes the unsafe characters of s, except those that keep contains.
func escape(s, keep string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := 0; i < len(s); {
		// Most text is printable ASCII, which is copied in runs.
		run := i
		for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
			i++
		}
		b.WriteString(s[run:i])
		if i == len(s) {
			break
		}

		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + hex[s[i]>>4:s[i]>>4+1] + hex[s[i]&15:s[i]&15+1])
		case strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case IsUnsafe(r) && r < 0x80:
			b.WriteString(`\x` + hex[r>>4:r>>4+1] + hex[r&15:r&15+1])
		case IsUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// JSON returns a JSON text in which unsafe characters inside strings are escaped. Its meaning stays the same,
// and so do line ends between values.
func JSON(text []byte) []byte {
	if isPrintable(text) || !bytes.ContainsFunc(text, isUnsafeInJSON) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if isUnsafeInJSON(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// isPrintable reports whether text has only characters of ASCII before DEL, which JSON never has to escape again. It is
// much faster than a search for unsafe characters.
func isPrintable(text []byte) bool {
	for _, c := range text {
		if c >= 0x7f {
			return false
		}
	}
	return true
}

// isUnsafeInJSON reports whether an unsafe character may occur unescaped in a JSON string. The control
// characters below U+0020 may not.
func isUnsafeInJSON(r rune) bool { return r >= 0x7f && IsUnsafe(r) }
