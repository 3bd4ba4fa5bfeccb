package keyshape

import (
	"strings"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// At looks for a key of shape s at position i.
func (s *Shape) At(b []byte, i int, final, flush bool) (match.Match, match.State) {
	rest := b[i:]
	n := min(len(rest), len(s.Prefix))
	if string(rest[:n]) != s.Prefix[:n] {
		return match.Match{}, match.Nothing
	}
	if n < len(s.Prefix) {
		return match.Pending(final)
	}

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
	if !whole || !s.fits(rest[n:end]) && !(open && end-n >= 8) {
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

// run returns how many bytes of p, from its beginning, a key may have after its
// prefix; full reports that these are as many as are searched.
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

// keyEnd returns where a key that begins at position i ends, relative to it, if its
// run of characters ends at end. ok is false in the middle of a word.
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
	return end, i == 0 || s.dots || !charset.Alnum.Has(b[i-1]) || hasLength(b, i, end)
}

// cutByLength shortens a run that has run into what follows it. In protobuf a
// string has its length in front and the next field's tag, which may be a
// letter, behind it; a length that is a few bytes shorter than the run is
// taken for true, if what it leaves is at least as long as a key.
func cutByLength(b []byte, i, run, least int) int {
	for n := run; n >= least && n > run-12; n-- {
		if hasLength(b, i, n) {
			return n
		}
	}
	return run
}

// hasLength reports whether n stands in front of i as a protobuf length, with
// something in front of it that can be the tag of a length-delimited field.
func hasLength(b []byte, i, n int) bool {
	switch {
	case n < 0x80 && i >= 2:
		return int(b[i-1]) == n && b[i-2]&7 == 2
	case n >= 0x80 && n < 1<<14 && i >= 3:
		return int(b[i-2]&0x7f)|int(b[i-1])<<7 == n && b[i-2] >= 0x80 && b[i-3]&7 == 2
	}
	return false
}
