package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// encodedQuote is a double quote in percent-encoding.
const encodedQuote = "%22"

// maxEncoded limits the value of a member in percent-encoding, in bytes.
const maxEncoded = 4 << 10

// encodedMember finds the value of a JSON member in percent-encoding whose first quote is at index i, as in the form
// payload=%7B%22token%22%3A%22…%22%7D, if its name denotes a secret. final is as for Finder.At.
func (f *Finder) encodedMember(b []byte, i int, final bool) (match.Match, match.State) {
	from, v := expect(b, i, encodedQuote)
	if v != match.Found {
		return orNothing(v, final)
	}
	p := from
	for p < len(b) && p-from <= names.MaxLen && charset.Name.Has(b[p]) {
		p++
	}
	if p == len(b) {
		return match.Pending(final)
	}
	name := b[from:p]
	if len(name) < 2 || !f.names.Kind(name).MayTell() {
		return match.Match{}, match.Nothing
	}
	if p, v = expect(b, p, encodedQuote); v != match.Found {
		return orNothing(v, final)
	}
	colon := "%3A"
	if p+2 < len(b) && b[p+2] == 'a' {
		colon = "%3a"
	}
	if p, v = expect(b, p, colon); v != match.Found {
		return orNothing(v, final)
	}
	if p < len(b) && b[p] == '+' {
		p++
	}
	if p, v = expect(b, p, encodedQuote); v != match.Found {
		return orNothing(v, final)
	}

	// The value ends at the next quote.
	rest := b[p:min(len(b), p+maxEncoded)]
	n := bytes.Index(rest, []byte(encodedQuote))
	if n < 0 {
		if len(rest) < maxEncoded {
			return match.Pending(final)
		}
		return match.Match{}, match.Nothing
	}
	value := rest[:n]
	if bytes.IndexByte(value, '&') >= 0 || !f.names.Kind(name).Fits(value) {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: p, End: p + n, Secret: string(value), Learn: n >= match.ShortSecret, Rule: match.Member, Name: string(name)}, match.Found
}
