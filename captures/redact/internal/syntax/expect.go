package syntax

import (
	"unwire/captures/redact/internal/match"
)

// expect skips the text want at p. The state is undecided if b ends before the whole text.
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

// skipSpace passes a little white space; more is no program's output.
func skipSpace(b []byte, p int) (int, match.State) {
	const most = 64
	for n := 0; p < len(b); n, p = n+1, p+1 {
		if c := b[p]; c != ' ' && c != '\t' && c != '\n' && c != '\r' || n == most {
			return p, match.Found
		}
	}
	return p, match.Undecided
}

// orNothing returns v, but "nothing" instead of "undecided" if final is set, because no more bytes
// follow.
func orNothing(v match.State, final bool) (match.Match, match.State) {
	if v == match.Undecided && final {
		v = match.Nothing
	}
	return match.Match{}, v
}
