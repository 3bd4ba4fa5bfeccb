package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

const (
	// maxJWK limits the private members of a JSON Web Key, in bytes.
	maxJWK = 8 << 10

	// leastJWK is the smallest length of a private member's value that is searched for: 256 bits in base64.
	leastJWK = 40
)

// isKeyMember reports whether the member at index i may be the first private one of a JSON Web Key: "d", or "k" of a
// symmetric key (RFC 7518, section 6).
func isKeyMember(b []byte, i int) bool {
	return i+2 >= len(b) || (b[i+1] == 'd' || b[i+1] == 'k') && b[i+2] == '"'
}

// privateJWK finds the private members of a JSON Web Key, whose first one is at index i: everything from the beginning of
// its value to the end of the object. The members after it are private too, or can be computed from them. final is as for
// Finder.At.
func privateJWK(b []byte, i int, final bool) (match.Match, match.State) {
	if i+2 >= len(b) {
		return match.Pending(final)
	}
	p, v := skipSpace(b, i+3)
	if v == match.Found {
		p, v = expect(b, p, ":")
	}
	if v == match.Found {
		p, v = skipSpace(b, p)
	}
	if v == match.Found {
		p, v = expect(b, p, `"`)
	}
	if v != match.Found {
		return orNothing(v, final)
	}
	n := p
	for n < len(b) && n-p < leastJWK && charset.Word.Has(b[n]) {
		n++
	}
	switch {
	case n-p == leastJWK:
	case n == len(b):
		return match.Pending(final)
	default:
		return match.Match{}, match.Nothing
	}

	// The object must be a key: its type is before or after.
	end := bytes.IndexByte(b[p:min(len(b), p+maxJWK)], '}')
	if end < 0 {
		if final || len(b)-p >= maxJWK {
			return match.Match{}, match.Nothing
		}
		return match.Match{}, match.Undecided
	}
	object := b[p : p+end]
	if !isJWK(b[max(0, i-lookBack):i]) && !isJWK(object) {
		return match.Match{}, match.Nothing
	}
	last := bytes.LastIndexByte(object, '"')
	if last < 0 {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: p, End: p + last, Secret: string(object[:last]), Rule: match.PrivateKey, Name: "JWK"}, match.Found
}

// isJWK reports whether a text has a member that JSON Web Keys have: the type, the curve, or the usual exponent.
func isJWK(b []byte) bool {
	return bytes.Contains(b, []byte(`"kty"`)) || bytes.Contains(b, []byte(`"crv"`)) || bytes.Contains(b, []byte(`"AQAB"`))
}
