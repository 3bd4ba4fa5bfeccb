package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// maxEntry limits an entry of .netrc or a constant of PHP, in bytes.
const maxEntry = 512

// netrcAt finds the password in an entry of .netrc, "machine HOST login USER password PASSWORD", whose first word is at
// index i. final is as for Finder.At.
func netrcAt(b []byte, i int, final bool) (match.Match, match.State) {
	const machine, password = "machine ", "password"
	rest := b[i:min(len(b), i+maxEntry)]
	if n := min(len(rest), len(machine)); string(rest[:n]) != machine[:n] {
		return match.Match{}, match.Nothing
	}
	isEnd := final || len(rest) == maxEntry
	for at, words := 0, 0; words < 8; words++ {
		from, end := nextWord(rest, at)
		if end == len(rest) && !isEnd {
			return match.Match{}, match.Undecided
		}
		word := rest[from:end]
		at = end
		switch {
		case words%2 == 1:
		case string(word) == password:
			from, end = nextWord(rest, at)
			if end == len(rest) && !isEnd {
				return match.Match{}, match.Undecided
			}
			if end == from {
				return match.Match{}, match.Nothing
			}
			return match.Match{Start: i + from, End: i + end, Secret: string(rest[from:end]), Rule: match.Parameter, Name: password}, match.Found
		case string(word) != "machine" && string(word) != "login" && string(word) != "account":
			return match.Match{}, match.Nothing
		}
	}
	return match.Match{}, match.Nothing
}

// defineAt finds the value of a constant of PHP whose name denotes a secret, define('NAME', 'VALUE'), at whose first
// byte index i is. final is as for Finder.At.
func (f *Finder) defineAt(b []byte, i int, final bool) (match.Match, match.State) {
	const define = "define("
	rest := b[i:min(len(b), i+maxEntry)]
	if n := min(len(rest), len(define)); string(rest[:n]) != define[:n] {
		return match.Match{}, match.Nothing
	}
	if n := bytes.IndexByte(rest, ')'); n >= 0 {
		rest = rest[:n]
	} else if !final && len(rest) < maxEntry {
		return match.Match{}, match.Undecided
	}
	parts := bytes.SplitN(rest, []byte("'"), 5)
	if len(parts) < 5 || len(parts[1]) > names.MaxLen || len(parts[3]) == 0 || string(bytes.TrimSpace(parts[2])) != "," {
		return match.Match{}, match.Nothing
	}
	kind := f.names.Kind(parts[1])
	if !kind.Fits(parts[3]) && !(isSalt(parts[1]) && charset.LooksRandom(parts[3])) {
		return match.Match{}, match.Nothing
	}
	from := i + len(parts[0]) + len(parts[1]) + len(parts[2]) + 3
	return match.Match{Start: from, End: from + len(parts[3]), Secret: string(parts[3]), Learn: len(parts[3]) >= match.ShortSecret, Rule: match.Parameter, Name: string(parts[1])}, match.Found
}

// isSalt reports whether a constant is the salt of hashes or signatures.
func isSalt(name []byte) bool { return bytes.HasSuffix(bytes.ToLower(name), []byte("salt")) }
