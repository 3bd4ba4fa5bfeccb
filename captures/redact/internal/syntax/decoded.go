package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

const (
	// maxEncodedBefore and maxEncodedAfter limit the percent-encoded text before and after a sign that is decoded to judge
	// the value there, in bytes. firstEncodedAfter is enough for most signs.
	maxEncodedBefore  = lookBack
	firstEncodedAfter = 256
	maxEncodedAfter   = 4 << 10

	// mostSigns is the greatest number of equal signs in a long value: its own sign, and two of the padding of base64.
	mostSigns = 3

	// encodedQuote is a double quote in percent-encoding.
	encodedQuote = "%22"
)

// A rule is a function like Finder.At, which calls consider with each possible match at index i of b.
type rule func(b []byte, i int, final, flush bool, consider func(match.Match, match.State))

// findEncoded applies a rule at index i to the percent-encoded text around that index. The match is in the encoded text, its
// secret in the decoded one. final and flush are as for Finder.At.
func findEncoded(b []byte, i int, final, flush bool, find rule) (match.Match, match.State) {
	before := appendDecoded(nil, b[encodedStart(b, i):i])
	to := encodedEnd(b, i, firstEncodedAfter)
	m, v := findDecoded(before, b, i, to, final, find)
	if v == match.Undecided && to-i == firstEncodedAfter && bytes.Count(b[i:to], b[i:i+len(encodedQuote)]) <= mostSigns {
		to = encodedEnd(b, i, maxEncodedAfter)
		m, v = findDecoded(before, b, i, to, final, find)
	}
	switch {
	case v == match.Undecided && (to < len(b) || final):
		return match.Match{}, match.Nothing
	case v == match.Found && flush && to == len(b) && m.End == to:
		m.Mask, m.Learn = &match.Mask{Until: "& \t\r\n\""}, false
	}
	return m, v
}

// findDecoded applies a rule at index i to the decoded text of b[i:to] after the text before.
func findDecoded(before, b []byte, i, to int, final bool, find rule) (m match.Match, v match.State) {
	isEnd := to < len(b) && !isEncoded(b[to]) || to == len(b) && final
	if !isEnd {
		to = beforePartialEscape(b, i, to)
	}
	text := appendDecoded(before[:len(before):len(before)], b[i:to])
	find(text, len(before), isEnd, false, func(m2 match.Match, v2 match.State) {
		if v2 == match.Undecided || v2 == match.Found && v != match.Undecided && m2.End > m.End {
			m, v = m2, v2
		}
	})
	if v != match.Found {
		return match.Match{}, v
	}
	if m.Start < len(before) {
		return match.Match{}, match.Nothing
	}
	m.Start, m.End = i+encodedLen(b[i:], m.Start-len(before)), i+encodedLen(b[i:], m.End-len(before))
	return m, match.Found
}

// encodedStart returns the index at which the percent-encoded text before index i begins, not within an escape.
func encodedStart(b []byte, i int) int {
	from := i
	for from > 0 && i-from < maxEncodedBefore && isEncoded(b[from-1]) {
		from--
	}
	switch {
	case from == 0 || i-from < 2:
	case b[from-1] == '%':
		from += 2
	case from > 1 && b[from-2] == '%':
		from++
	}
	return from
}

// encodedEnd returns the index at which the percent-encoded text from index i on ends, or after limit bytes.
func encodedEnd(b []byte, i, limit int) int {
	to := i
	for to < len(b) && to-i < limit && isEncoded(b[to]) {
		to++
	}
	return to
}

// beforePartialEscape returns the index of an escape that begins in b[from:to] and does not end there; to if there is none.
func beforePartialEscape(b []byte, from, to int) int {
	for n := 1; n <= 2 && to-n > from; n++ {
		if b[to-n] == '%' {
			return to - n
		}
	}
	return to
}

// isEncoded reports whether c may occur in percent-encoded text.
func isEncoded(c byte) bool {
	return c > ' ' && c < 0x7f && c != '&' && c != '"' && c != '<' && c != '>' && c != '\\' && c != '`'
}

// appendDecoded appends to text what percent-encoded bytes stand for. It keeps invalid escapes.
func appendDecoded(text, b []byte) []byte {
	for len(b) > 0 {
		c, n := decodedByte(b)
		text, b = append(text, c), b[n:]
	}
	return text
}

// encodedLen returns how many bytes at the beginning of b stand for n decoded ones.
func encodedLen(b []byte, n int) int {
	end := 0
	for range n {
		_, size := decodedByte(b[end:])
		end += size
	}
	return end
}

// decodedByte returns the first decoded byte of b, and the number of bytes that stand for it.
func decodedByte(b []byte) (c byte, n int) {
	switch {
	case b[0] == '+':
		return ' ', 1
	case b[0] == '%' && len(b) > 2 && charset.IsHexDigit(b[1]) && charset.IsHexDigit(b[2]):
		return charset.Unhex(b[1])<<4 | charset.Unhex(b[2]), 3
	}
	return b[0], 1
}
