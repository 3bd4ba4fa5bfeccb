package redact

import (
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/syntax"
)

// A scanner finds secrets in bytes that come in pieces. Whatever the pieces,
// it finds the same; only flush gives up some of that for time. It looks for the
// members of JSON itself: a body has no bound, and may be cut off or be no JSON.
type scanner struct {
	r   *Redactor
	hit func(start, end int64, secret string) // "": the rest of the one before

	// see, if set, is called with each match before hit; its positions are from base.
	see func(m match.Match, base int64)

	// split, if set, is called with the parts of a known secret that stands in two places,
	// as hit is. Bytes that were decided before may be among them: see firstSplit.
	split  func(start, end int64, secret string)
	splits []split

	form  bool   // a parameter may begin at the first byte
	buf   []byte // a little that was decided, for context, then the rest
	pos   int    // first undecided byte of buf
	base  int64  // position of buf[0] in all bytes
	cover *match.Mask
}

// scanContext is how far rules look back.
const scanContext = syntax.Context

func newScanner(r *Redactor, form bool) *scanner { return &scanner{r: r, form: form} }

// decided returns the number of bytes that are decided.
func (s *scanner) decided() int64 { return s.base + int64(s.pos) }

// feed takes the next bytes.
func (s *scanner) feed(p []byte) {
	s.drop()
	if s.pos == len(s.buf) && s.cover == nil && !s.form && len(s.splits) == 0 {
		// Where nothing is awaited and nothing begins soon, p needs no context.
		if from := s.r.rules.Load().next(p, 0); from >= scanContext {
			s.feedInPlace(p, from)
			return
		}
	}
	s.buf = append(s.buf, p...)
	s.search()
}

// feedInPlace is feed for bytes at the first of which, up to from, nothing begins. It
// copies only what may be needed with the bytes that follow.
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

// search looks at what is undecided.
func (s *scanner) search() {
	s.run(false, false)
	if len(s.splits) > 0 {
		s.findRests()
	}
}

// finish decides everything: no bytes follow, or none that belong to these.
func (s *scanner) finish() {
	s.run(true, false)
	if len(s.splits) > 0 {
		s.findRests()
	}
	s.cover = nil
	s.base += int64(s.pos) // what follows has no context
	s.buf, s.pos = s.buf[:0], 0
}

// flush decides everything now, though bytes may follow.
func (s *scanner) flush() {
	s.run(true, true)
	s.endSplits()
}

// drop forgets what is decided, except some context.
func (s *scanner) drop() {
	if n := s.notNeeded(); n > 0 {
		s.buf = append(s.buf[:0], s.buf[n:]...)
		s.base += int64(n)
		s.pos -= n
	}
}

// notNeeded returns how many bytes of what is decided are of no more use.
func (s *scanner) notNeeded() int {
	n := s.pos - scanContext
	if len(s.splits) > 0 {
		n = min(n, int(s.firstSplit(s.decided())-s.base))
	}
	return max(0, n)
}

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
			m, v = s.r.syntax.Parameter(s.buf, 0, final, flush)
		}
		if v == match.Nothing {
			s.pos = f.next(s.buf, s.pos)
			for s.pos < len(s.buf) {
				n := s.passQuote(f)
				if n == 0 {
					break
				}
				s.pos = f.next(s.buf, s.pos+n)
			}
			if s.pos == len(s.buf) {
				return
			}
			m, v = s.r.at(f, s.buf, s.pos, final, flush)
		}
		switch v {
		case match.Undecided:
			return
		case match.Nothing:
			s.addSplit(f)
			s.pos++
		case match.Found:
			s.r.learnMatch(m)
			f = s.r.rules.Load()
			if s.see != nil {
				s.see(m, s.base)
			}
			s.hit(s.base+int64(m.Start), s.base+int64(m.End), m.Secret)
			s.pos, s.cover = m.End, m.Mask
		}
	}
}

// uncover passes the bytes that the mask covers.
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

// at looks at position i of b. Final says that no bytes follow; flush, that
// none can be waited for: what has been seen of a secret is taken for it.
func (r *Redactor) at(f *ruleset, b []byte, i int, final, flush bool) (m match.Match, v match.State) {
	consider := func(m2 match.Match, v2 match.State) {
		if v2 == match.Undecided || v2 == match.Found && v != match.Undecided && m2.End > m.End {
			m, v = m2, v2
		}
	}
	r.syntax.At(b, i, final, flush, consider)
	rest := b[i:]
	if len(rest) < 3 {
		if final {
			return m, v
		}
		return m, match.Undecided // or the filter had not let it through
	}
	if !f.admits(rest[0], rest[1], rest[2]) {
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
	if !f.base.admits(k[0], k[1], k[2]) {
		return m, v
	}
	for s := range f.shapes[k] {
		consider(f.shapes[k][s].At(b, i, final, flush))
	}
	return m, v
}

// passQuote returns how many of the bytes from a quote on are passed, 0 if something may begin
// at the next byte.
func (s *scanner) passQuote(f *ruleset) int {
	b, i := s.buf, s.pos
	if b[i] != '"' || len(b)-i < 3 || f.admits(b[i], b[i+1], b[i+2]) {
		return 0
	}
	n := s.r.syntax.Quoted(b, i)
	for at := i + 1; at+2 < i+n; at++ {
		if f.pairs[pairOf(b[at], b[at+1])] != 0 && f.admits(b[at], b[at+1], b[at+2]) {
			return at - i
		}
	}
	return n
}
