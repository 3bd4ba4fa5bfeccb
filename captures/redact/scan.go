package redact

import "strings"

// A mask covers what follows a secret that was cut off: one that is too long
// to be held, or that was not waited for any longer.
type mask struct {
	literal string   // the rest of a known one, or
	chars   *charset // a run of these, or
	until   string   // everything up to one of these
}

// covers reports whether c, the next byte, belongs to the secret still.
func (m *mask) covers(c byte) bool {
	switch {
	case m.until != "":
		return strings.IndexByte(m.until, c) < 0
	case m.chars != nil:
		return m.chars.has(c)
	case m.literal != "" && m.literal[0] == c:
		m.literal = m.literal[1:]
		return true
	}
	return false
}

// A scanner finds secrets in bytes that come in pieces. Whatever the pieces,
// it finds the same; only hurry gives up some of that for time. It looks for the
// members of JSON itself: a body has no bound, and may be cut off or be no JSON.
type scanner struct {
	r   *Redactor
	hit func(start, end int64, secret string) // "": the rest of the one before
	see func(m match, base int64)             // nil, or told of each match first; its positions are from base

	form  bool   // a parameter may begin at the first byte
	buf   []byte // a little that was decided, for context, then the rest
	pos   int    // first undecided byte of buf
	base  int64  // position of buf[0] in all bytes
	cover *mask
}

// scanContext is how far rules look back.
const scanContext = 4

func newScanner(r *Redactor, form bool) *scanner { return &scanner{r: r, form: form} }

// decided returns the number of bytes that are decided.
func (s *scanner) decided() int64 { return s.base + int64(s.pos) }

// feed takes the next bytes.
func (s *scanner) feed(p []byte) {
	s.drop()
	s.buf = append(s.buf, p...)
	s.run(false, false)
}

// finish decides everything: no bytes follow, or none that belong to these.
func (s *scanner) finish() {
	s.run(true, false)
	s.cover = nil
	s.base += int64(s.pos) // what follows has no context
	s.buf, s.pos = s.buf[:0], 0
}

// hurry decides everything now, though bytes may follow.
func (s *scanner) hurry() { s.run(true, true) }

// drop forgets what is decided, except some context.
func (s *scanner) drop() {
	if n := s.pos - scanContext; n > 0 {
		s.buf = append(s.buf[:0], s.buf[n:]...)
		s.base += int64(n)
		s.pos -= n
	}
}

func (s *scanner) run(final, hurry bool) {
	f := s.r.rules.Load()
	for s.pos < len(s.buf) {
		if s.cover != nil {
			s.uncover()
			continue
		}
		var m match
		var v verdict
		if s.form && s.decided() == 0 {
			m, v = s.r.bodyParameter(s.buf, 0, final, hurry)
		}
		if v == nothing {
			if s.pos = f.next(s.buf, s.pos); s.pos == len(s.buf) {
				return
			}
			m, v = s.r.at(f, s.buf, s.pos, final, hurry)
		}
		switch v {
		case undecided:
			return
		case nothing:
			s.pos++
		case found:
			s.r.learnMatch(m)
			f = s.r.rules.Load()
			if s.see != nil {
				s.see(m, s.base)
			}
			s.hit(s.base+int64(m.start), s.base+int64(m.end), m.secret)
			s.pos, s.cover = m.end, m.mask
		}
	}
}

// uncover passes the bytes that the mask covers.
func (s *scanner) uncover() {
	from := s.pos
	for s.pos < len(s.buf) && s.cover.covers(s.buf[s.pos]) {
		s.pos++
	}
	if s.pos > from {
		s.hit(s.base+int64(from), s.base+int64(s.pos), "")
	}
	if s.pos < len(s.buf) {
		s.cover = nil
	}
}
