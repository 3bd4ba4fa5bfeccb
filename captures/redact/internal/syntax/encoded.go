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
	maxEncodedAfter   = match.MaxSecret

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
	before, _ := decodeEncoded(b[from:i])
	to := i
	for limit := firstEncodedAfter; ; limit = maxEncodedAfter {
		for to < len(b) && to-i < limit && isEncoded(b[to]) {
			to++
		}
		isEnd := to < len(b) && !isEncoded(b[to]) || to == len(b) && final
		after, offsets := decodeEncoded(b[i:to])
		text := append(before[:len(before):len(before)], after...)

		var m match.Match
		var v match.State
		find(text, len(before), isEnd, false, func(m2 match.Match, v2 match.State) {
			if v2 == match.Undecided || v2 == match.Found && v != match.Undecided && m2.End > m.End {
				m, v = m2, v2
			}
		})
		switch {
		case v == match.Found && m.Start >= len(before):
			m.Start, m.End = i+offsets[m.Start-len(before)], i+offsets[m.End-len(before)]
			if to == len(b) && flush && m.End == to {
				m.Mask, m.Learn = &match.Mask{Until: "& \t\r\n\""}, false
			}
			return m, match.Found
		case v == match.Undecided && to == len(b) && !isEnd:
			return match.Match{}, match.Undecided
		case v != match.Undecided || isEnd || limit == maxEncodedAfter:
			return match.Match{}, match.Nothing
		}
	}
}

// isEncoded reports whether c may occur in percent-encoded text.
func isEncoded(c byte) bool {
	return c > ' ' && c < 0x7f && c != '&' && c != '"' && c != '<' && c != '>' && c != '\\' && c != '`'
}

// decodeEncoded decodes percent-encoding and keeps invalid escapes. offsets has the offset in b of each byte of the result,
// and of its end.
func decodeEncoded(b []byte) (text []byte, offsets []int) {
	text, offsets = make([]byte, 0, len(b)), make([]int, 0, len(b)+1)
	for i := 0; i < len(b); i++ {
		offsets = append(offsets, i)
		switch {
		case b[i] == '+':
			text = append(text, ' ')
		case b[i] == '%' && i+2 < len(b) && charset.IsHexDigit(b[i+1]) && charset.IsHexDigit(b[i+2]):
			text = append(text, charset.Unhex(b[i+1])<<4|charset.Unhex(b[i+2]))
			i += 2
		default:
			text = append(text, b[i])
		}
	}
	return text, append(offsets, len(b))
}
