package syntax

import (
	"bytes"
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
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

// encodedSigns are the percent-encoded signs at which encodedAt finds secrets.
var encodedSigns = []string{encodedQuote, "%26", "%3A", "%3D", "%3E", "%3a", "%3d", "%3e"}

// encodedAt finds the secret at the percent-encoded sign at index i, as in payload=%7B%22token%22%3A%22…%22%7D. It decodes
// the text around the sign, and applies the rules for plain text. final and flush are as for Finder.At.
func (f *Finder) encodedAt(b []byte, i int, final, flush bool) (match.Match, match.State) {
	if i+len(encodedQuote) > len(b) {
		return match.Pending(final)
	}
	if !slices.Contains(encodedSigns, string(b[i:i+len(encodedQuote)])) {
		return match.Match{}, match.Nothing
	}
	if v := f.mayBeginEncoded(b, i); v != match.Found {
		return orNothing(v, final)
	}
	return findEncoded(b, i, final, flush, f.At)
}

// mayBeginEncoded reports whether a secret may follow the encoded sign at index i. It excludes most signs of JSON and XML
// by the bytes after them, without decoding.
func (f *Finder) mayBeginEncoded(b []byte, i int) match.State {
	p := i + len(encodedQuote)
	next := b[p:min(len(b), p+len(encodedQuote))]
	switch b[i+2] | 0x20 {
	case '2':
		return f.mayBeginEncodedMember(b, p)
	case 'a':
		// A quote follows in JSON, whose members are found from their first quote.
		if string(next) == encodedQuote {
			return match.Nothing
		}
	case 'e':
		// Another tag follows a tag.
		if string(next) == "%3C" || string(next) == "%3c" || string(next) == "%0A" {
			return match.Nothing
		}
	}
	if len(next) < len(encodedQuote) {
		return match.Undecided
	}
	return match.Found
}

// mayBeginEncodedMember reports whether the encoded JSON member whose name begins at index p may have a secret.
func (f *Finder) mayBeginEncodedMember(b []byte, p int) match.State {
	from := p
	for p < len(b) && p-from <= names.MaxLen && charset.Name.Has(b[p]) {
		p++
	}
	name := b[from:p]
	for _, want := range [...]string{encodedQuote, "%3a"} {
		n := min(len(want), len(b)-p)
		if !bytes.EqualFold(b[p:p+n], []byte(want[:n])) {
			return match.Nothing
		}
		if n < len(want) {
			return match.Undecided
		}
		p += n
	}
	if len(name) < 2 || !f.mayTell(name) {
		return match.Nothing
	}
	return match.Found
}

// A rule is a function like Finder.At, which calls consider with each possible match at index i of b.
type rule func(b []byte, i int, final, flush bool, consider func(match.Match, match.State))

// findEncoded applies a rule at index i to the percent-encoded text around that index. The match is in the encoded text, its
// secret in the decoded one. final and flush are as for Finder.At.
func findEncoded(b []byte, i int, final, flush bool, find rule) (match.Match, match.State) {
	from := i
	for from > 0 && i-from < maxEncodedBefore && isEncoded(b[from-1]) {
		from--
	}
	switch {
	case from == 0 || i-from < 2:
	case b[from-1] == '%':
		from += 2 // not within an escape
	case from > 1 && b[from-2] == '%':
		from++
	}
	before := appendDecoded(nil, b[from:i])
	to := i
	for limit := firstEncodedAfter; ; limit = maxEncodedAfter {
		for to < len(b) && to-i < limit && isEncoded(b[to]) {
			to++
		}
		isEnd := to < len(b) && !isEncoded(b[to]) || to == len(b) && final
		upTo := to
		if !isEnd {
			upTo = beforePartialEscape(b, i, to)
		}
		text := appendDecoded(before[:len(before):len(before)], b[i:upTo])

		var m match.Match
		var v match.State
		find(text, len(before), isEnd, false, func(m2 match.Match, v2 match.State) {
			if v2 == match.Undecided || v2 == match.Found && v != match.Undecided && m2.End > m.End {
				m, v = m2, v2
			}
		})
		switch {
		case v == match.Found && m.Start >= len(before):
			m.Start, m.End = i+encodedLen(b[i:], m.Start-len(before)), i+encodedLen(b[i:], m.End-len(before))
			if to == len(b) && flush && m.End == to {
				m.Mask, m.Learn = &match.Mask{Until: "& \t\r\n\""}, false
			}
			return m, match.Found
		case v == match.Undecided && to == len(b) && !isEnd:
			return match.Match{}, match.Undecided
		case v != match.Undecided || isEnd || limit == maxEncodedAfter || bytes.Count(b[i:to], b[i:i+len(encodedQuote)]) > mostSigns:
			return match.Match{}, match.Nothing
		}
	}
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
