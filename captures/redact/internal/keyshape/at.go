package keyshape

import (
	"strings"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// At reports whether a key of shape s begins at index i of b. final means that no bytes follow b, and flush
// that the caller cannot wait for more, so that the beginning of a key is a match.
func (s *Shape) At(b []byte, i int, final, flush bool) (match.Match, match.State) {
	rest := b[i:]
	n := min(len(rest), len(s.Prefix))
	if string(rest[:n]) != s.Prefix[:n] {
		return match.Match{}, match.Nothing
	}
	if n < len(s.Prefix) {
		return match.Pending(final)
	}

	// The prefix matches; the rest must be a run of the right length and characters.
	run, full := s.run(rest[n:])
	cut := n+run == len(rest) && !full // what follows may belong to it
	if cut && !final {
		return match.Match{}, match.Undecided
	}
	end, whole := n+run, true
	if s.max == 0 {
		end, whole = s.keyEnd(b, i, end)
	}
	open := flush && cut
	if !whole || !s.fits(rest[n:end]) && !(open && end-n >= leastOpen) {
		return match.Match{}, match.Nothing
	}

	m := match.Match{Start: i, End: i + end, Secret: string(rest[:end]), Rule: match.Shape, Name: strings.TrimSpace(s.Prefix)}
	if s.keep {
		m.Start += n
		m.Secret = m.Secret[n:]
	}
	if open || s.max == 0 && full {
		m.Mask = &match.Mask{Chars: s.chars}
	}
	return m, match.Found
}

// run returns how many bytes at the beginning of p, which follows a key's prefix, can belong to the key. full
// means that the greatest length was reached.
func (s *Shape) run(p []byte) (n int, full bool) {
	limit := match.MaxSecret
	if s.max > 0 {
		limit = s.max
	}
	for n < limit && n < len(p) && s.chars.Has(p[n]) {
		n++
	}
	return n, n == limit
}

// keyEnd returns the length of a key that begins at index i, after removing bytes at its end that do not belong
// to it. end is the length of the run of possible characters. ok is false if the key begins within a word.
func (s *Shape) keyEnd(b []byte, i, end int) (_ int, ok bool) {
	n := len(s.Prefix)
	for end > n && (b[i+end-1] == '.' || b[i+end-1] == ':') {
		end-- // the end of a sentence
	}
	if short := cutByLength(b, i, end, n+s.min); short < end {
		return short, true
	}
	if s.after != 0 {
		return end, i > 0 && b[i-1] == s.after
	}
	return end, i == 0 || s.dots || !charset.Alnum.Has(s.Prefix[0]) || !charset.Alnum.Has(b[i-1]) || hasLength(b, i, end)
}

// cutByLength returns the length of a key at index i without a protobuf tag that follows it. In protobuf a
// length precedes a string, and the tag of the next field, which may look like a letter, follows it. If the
// byte before the key is a length slightly smaller than run, but at least least, that length is returned;
// otherwise run.
func cutByLength(b []byte, i, run, least int) int {
	for n := run; n >= least && n > run-12; n-- {
		if hasLength(b, i, n) {
			return n
		}
	}
	return run
}

// hasLength reports whether the bytes before index i are the protobuf length n, after a byte that can be the
// tag of a length-delimited field.
func hasLength(b []byte, i, n int) bool {
	switch {
	case n < 0x80 && i >= 2:
		return int(b[i-1]) == n && b[i-2]&7 == 2
	case n >= 0x80 && n < 1<<14 && i >= 3:
		return int(b[i-2]&0x7f)|int(b[i-1])<<7 == n && b[i-2] >= 0x80 && b[i-3]&7 == 2
	}
	return false
}
