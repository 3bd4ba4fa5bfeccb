package syntax

import (
	"bytes"
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
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
