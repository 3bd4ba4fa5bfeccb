package syntax

import (
	"unwire/captures/redact/internal/match"
)

const (
	// lookBack is the number of bytes before a value in which its name is searched for.
	lookBack = 160

	// farBack and farAhead are how many bytes before and after an entry of a mapping are searched for the name of the mapping
	// and the kind of its object.
	farBack  = 1 << 10
	farAhead = 1 << 10
)

// isSpace reports whether c is ASCII white space.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// expect returns the index after the text want at index p of b. The state is Found if the text is there, and
// Undecided if b ends within it.
func expect(b []byte, p int, want string) (int, match.State) {
	n := min(len(b)-p, len(want))
	switch {
	case string(b[p:p+n]) != want[:n]:
		return p, match.Nothing
	case n < len(want):
		return p, match.Undecided
	}
	return p + n, match.Found
}

// skipSpace returns the index after white space at index p, of which it skips at most 64 bytes. The state is
// Undecided if b ends before another character.
func skipSpace(b []byte, p int) (int, match.State) {
	const most = 64
	for n := 0; p < len(b); n, p = n+1, p+1 {
		if c := b[p]; c != ' ' && c != '\t' && c != '\n' && c != '\r' || n == most {
			return p, match.Found
		}
	}
	return p, match.Undecided
}

// orNothing returns an empty match and the state v, or Nothing if v is Undecided but no more bytes follow
// (final).
func orNothing(v match.State, final bool) (match.Match, match.State) {
	if v == match.Undecided && final {
		v = match.Nothing
	}
	return match.Match{}, v
}
