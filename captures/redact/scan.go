package redact

import (
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/syntax"
)

// A scanner finds secrets in bytes that arrive piece by piece. It finds the same ones however the bytes are
// divided, except after flush. It searches for members of JSON itself instead of using a parser, because a body
// may be of any length, truncated, or not JSON.
type scanner struct {
	// r contains the rules for recognising secrets.
	r *Redactor
	// syntax finds secrets by the names before them.
	syntax *syntax.Finder
	// hit is called with the position of each secret in the body. An empty secret means that the bytes continue
	// the previous secret.
	hit func(start, end int64, secret string)

	// see, if set, is called with each match before its secret is reported. Positions in the match are
	// relative to base.
	see func(m match.Match, base int64)

	// split, if set, is called with the position of each part of a learned secret that is divided by other
	// bytes. The bytes may have been decided before, so callers hold back bytes from firstSplit on.
	split func(start, end int64, secret string)

	// splits are the learned secrets of which only the beginning was found so far.
	splits []split

	// form means that the data is a URL-encoded form, so that a parameter may begin at the first byte.
	form bool
	// buf contains up to scanContext decided bytes as context, then the undecided ones.
	buf []byte
	// pos is the index in buf of the first byte that has not been searched completely.
	pos int
	// base is the position of buf[0] in the whole body.
	base int64
	// cover is set while the bytes that follow belong to a secret that was reported before its end was
	// received.
	cover *match.Mask

	// passed counts the JSON strings that were seen before strings is created.
	passed int
	// strings caches harmless JSON strings; nil until the scanner has seen many strings.
	strings *stringCache
}

// scanContext is the number of bytes before a position that the rules may examine.
const scanContext = syntax.Context

// newScanner returns a scanner with the rules of r. form means that the body is a URL-encoded form.
func newScanner(r *Redactor, form bool) *scanner { return &scanner{r: r, syntax: r.syntax, form: form} }

// decided returns the number of bytes of the body that were searched completely.
func (s *scanner) decided() int64 { return s.base + int64(s.pos) }

// feed searches the next bytes of the body.
func (s *scanner) feed(p []byte) {
	s.drop()
	if s.pos == len(s.buf) && s.cover == nil && !s.form && len(s.splits) == 0 && !(s.pos == 0 && s.syntax.FindsWhole()) {
		// Where nothing is awaited and nothing begins soon, p needs no context.
		if from := s.r.rules.Load().next(p, 0); from >= scanContext {
			s.feedInPlace(p, from)
			return
		}
	}
	s.buf = append(s.buf, p...)
	s.search()
}

// feedInPlace is feed for bytes p in which nothing can begin before index from. It avoids a copy of p, and
// keeps only the end that may be needed together with later bytes.
func (s *scanner) feedInPlace(p []byte, from int) {
	own := s.buf
	s.base += int64(len(own))
	s.buf, s.pos = p, from
	s.search()
	n := s.notNeeded()
	s.buf = append(own[:0], p[n:]...)
	s.base += int64(n)
	s.pos -= n
}

// search searches the bytes in the buffer as far as possible without the following ones.
func (s *scanner) search() {
	s.run(false, false)
	if len(s.splits) > 0 {
		s.findRests(false)
	}
}

// finish searches the rest of the buffer, because no related bytes follow.
func (s *scanner) finish() {
	s.run(true, false)
	if len(s.splits) > 0 {
		s.findRests(true)
	}
	s.cover = nil
	// The bytes that follow have no context.
	s.base += int64(s.pos)
	s.buf, s.pos = s.buf[:0], 0
}

// awaitsWhole reports whether the bytes so far may be the beginning of a body that is nothing but a token.
func (s *scanner) awaitsWhole() bool {
	if s.pos > 0 || s.cover != nil {
		return false
	}
	_, v := s.syntax.Whole(s.buf, false)
	return v == match.Undecided
}

// flush ends the search of the bytes so far, although further bytes may follow. The beginning of a secret at
// the end counts as a secret.
func (s *scanner) flush() {
	s.run(true, true)
	s.endSplits()
}

// drop removes decided bytes that are not needed as context.
func (s *scanner) drop() {
	if n := s.notNeeded(); n > 0 {
		s.buf = append(s.buf[:0], s.buf[n:]...)
		s.base += int64(n)
		s.pos -= n
	}
}

// notNeeded returns the number of decided bytes at the start of buf that are no longer needed.
func (s *scanner) notNeeded() int {
	n := s.pos - scanContext
	if len(s.splits) > 0 {
		n = min(n, int(s.firstSplit(s.decided())-s.base))
	}
	return max(0, n)
}

// run searches from pos on, until a match needs more bytes or all bytes are decided. final and flush are as for
// scanner.at.
func (s *scanner) run(final, flush bool) {
	f := s.r.rules.Load()
	for s.pos < len(s.buf) {
		if s.cover != nil {
			s.uncover()
			continue
		}
		var m match.Match
		var v match.State
		if s.form && s.decided() == 0 {
			m, v = s.syntax.Parameter(s.buf, 0, final, flush)
		}
		if v == match.Nothing && s.pos == 0 {
			m, v = s.syntax.Whole(s.buf, final)
		}
		// Skip bytes with which no rule can match; strings that cannot contain a secret are skipped
		// as a whole.
		if v == match.Nothing {
			s.pos = f.next(s.buf, s.pos)
			for s.pos < len(s.buf) {
				n := s.skipString(f)
				if n == 0 {
					break
				}
				s.pos = f.nextAfterString(s.buf, s.pos+n)
			}
			if s.pos == len(s.buf) {
				return
			}
			m, v = s.at(f, s.buf, s.pos, final, flush)
		}
		switch v {
		case match.Undecided:
			return
		case match.Nothing:
			s.addSplit(f)
			s.pos++
		case match.Found:
			// A learnt secret is found everywhere from now on, also in other encodings.
			s.r.learnMatch(m)
			f = s.r.rules.Load()
			if s.see != nil {
				s.see(m, s.base)
			}
			secret := m.Secret
			if m.IsNumber {
				secret = numberSecret
			}
			s.hit(s.base+int64(m.Start), s.base+int64(m.End), secret)
			s.pos, s.cover = m.End, m.Mask
		}
	}
}

// uncover reports further bytes of a secret that was reported before its end was received (see cover).
func (s *scanner) uncover() {
	from := s.pos
	for s.pos < len(s.buf) && s.cover.Covers(s.buf[s.pos]) {
		s.pos++
	}
	if s.pos > from {
		s.hit(s.base+int64(from), s.base+int64(s.pos), "")
	}
	if s.pos < len(s.buf) {
		s.cover = nil
	}
}

// at searches for a secret that begins at index i of b. final means that no bytes follow b; flush that the
// caller cannot wait for more, so that the visible beginning of a secret counts as the secret.
func (s *scanner) at(f *ruleset, b []byte, i int, final, flush bool) (m match.Match, v match.State) {
	consider := func(m2 match.Match, v2 match.State) {
		// Prefer the longest match, and wait if a longer one is possible.
		if v2 == match.Undecided || v2 == match.Found && v != match.Undecided && m2.End > m.End {
			m, v = m2, v2
		}
	}
	s.syntax.At(b, i, final, flush, consider)
	rest := b[i:]
	if len(rest) < 3 {
		if final {
			return m, v
		}
		// Otherwise the filter would not have accepted this position.
		return m, match.Undecided
	}
	if !f.admits(rest) {
		return m, v
	}
	k := [3]byte{rest[0], rest[1], rest[2]}
	if f.mayHold(rest) {
		for _, l := range f.literals[k] {
			consider(l.at(rest, i, final, flush))
		}
		for _, l := range f.older[k] {
			consider(l.at(rest, i, final, flush))
		}
	}

	// All shapes are in base, whose filter accepts less.
	if !f.base.admits(rest) {
		return m, v
	}
	for n := range f.shapes[k] {
		consider(f.shapes[k][n].At(b, i, final, flush))
	}
	return m, v
}
