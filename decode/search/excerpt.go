package search

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// around returns a Match for data[lo:hi] with the data before and after it, as text, or as hex if asHex is true.
func around(data []byte, lo, hi int, asHex bool) Match {
	if asHex {
		const most = 16
		a, b := max(lo-most/2, 0), min(hi+most/2, len(data))
		if hi-lo > 4*most {
			hi = lo + 4*most
			b = hi
		}
		m := Match{Value: hexText(data[a:b])}
		// A byte takes three characters: two digits and a space.
		m.Start, m.End = 3*(lo-a), 3*(hi-a)-1
		if hi == lo {
			m.Start = min(m.Start, len(m.Value))
			m.End = m.Start
		}
		return m
	}

	// Do not divide characters at the ends.
	hi = min(hi, lo+4*contextLen)
	a, b := max(lo-contextLen, 0), min(hi+contextLen, len(data))
	for a < lo && !utf8.RuneStart(data[a]) {
		a++
	}
	for b > hi && b < len(data) && !utf8.RuneStart(data[b]) {
		b--
	}
	return Match{Value: string(data[a:b]), Start: lo - a, End: hi - a}
}

// hexText formats bytes as hex with spaces; long ones are shortened.
func hexText(b []byte) string {
	var out strings.Builder
	for i, c := range b {
		if i == 4*contextLen {
			out.WriteString(" …")
			break
		}
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString([]byte{c}))
	}
	return out.String()
}

// isPlain reports whether b is UTF-8 without control characters other than white space and escape.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b {
			return false
		}
	}
	return utf8.Valid(b)
}
