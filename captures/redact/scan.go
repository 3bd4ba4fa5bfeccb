package redact

// A scanner finds secrets in bytes that come in pieces. Whatever the pieces,
// it finds the same; only flush gives up some of that for time. It looks for the
// members of JSON itself: a body has no bound, and may be cut off or be no JSON.
type scanner struct {
	r   *Redactor
	hit func(start, end int64, secret string) // "": the rest of the one before

	// see, if set, is called with each match before hit; its positions are from base.
	see func(m match, base int64)

	form  bool   // a parameter may begin at the first byte
	buf   []byte // a little that was decided, for context, then the rest
	pos   int    // first undecided byte of buf
	base  int64  // position of buf[0] in all bytes
	cover *mask

	names  int         // of members that were looked at
	others *otherNames // of these
}

// scanContext is how far rules look back.
const scanContext = 4

func newScanner(r *Redactor, form bool) *scanner { return &scanner{r: r, form: form} }

// decided returns the number of bytes that are decided.
func (s *scanner) decided() int64 { return s.base + int64(s.pos) }

// feed takes the next bytes.
func (s *scanner) feed(p []byte) {
	s.drop()
	if s.pos == len(s.buf) && s.cover == nil && !s.form {
		// Where nothing is awaited and nothing begins at once, p needs no context.
		if from := s.r.rules.Load().next(p, 0); from >= scanContext {
			s.feedInPlace(p, from)
			return
		}
	}
	s.buf = append(s.buf, p...)
	s.run(false, false)
}

// feedInPlace is feed for bytes at the first of which, up to from, nothing begins. It
// copies only what may be needed with the bytes that follow.
func (s *scanner) feedInPlace(p []byte, from int) {
	own := s.buf
	s.base += int64(len(own))
	s.buf, s.pos = p, from
	s.run(false, false)
	n := max(0, s.pos-scanContext)
	s.buf = append(own[:0], p[n:]...)
	s.base += int64(n)
	s.pos -= n
}

// finish decides everything: no bytes follow, or none that belong to these.
func (s *scanner) finish() {
	s.run(true, false)
	s.cover = nil
	s.base += int64(s.pos) // what follows has no context
	s.buf, s.pos = s.buf[:0], 0
}

// flush decides everything now, though bytes may follow.
func (s *scanner) flush() { s.run(true, true) }

// drop forgets what is decided, except some context.
func (s *scanner) drop() {
	if n := s.pos - scanContext; n > 0 {
		s.buf = append(s.buf[:0], s.buf[n:]...)
		s.base += int64(n)
		s.pos -= n
	}
}

func (s *scanner) run(final, flush bool) {
	f := s.r.rules.Load()
	for s.pos < len(s.buf) {
		if s.cover != nil {
			s.uncover()
			continue
		}
		var m match
		var v matchState
		if s.form && s.decided() == 0 {
			m, v = s.r.bodyParameter(s.buf, 0, final, flush)
		}
		if v == nothing {
			s.pos = f.next(s.buf, s.pos)
			for s.pos < len(s.buf) && s.isOtherQuote(f, s.buf[s.pos:]) {
				s.pos = f.next(s.buf, s.pos+1)
			}
			if s.pos == len(s.buf) {
				return
			}
			m, v = s.r.at(f, s.buf, s.pos, final, flush)
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

// at looks at position i of b. Final says that no bytes follow; flush, that
// none can be waited for: what has been seen of a secret is taken for it.
func (r *Redactor) at(f *ruleset, b []byte, i int, final, flush bool) (m match, v matchState) {
	consider := func(m2 match, v2 matchState) {
		if v2 == undecided || v2 == found && v != undecided && m2.end > m.end {
			m, v = m2, v2
		}
	}
	switch b[i] {
	case '"':
		consider(r.member(b, i, final, flush))
	case '&', '?':
		consider(r.bodyParameter(b, i+1, final, flush))
	case ':':
		consider(userinfoAt(b, i, final))
	case '-':
		consider(privateKey(b, i, final, flush))
	}
	rest := b[i:]
	if len(rest) < 3 {
		if final {
			return m, v
		}
		return m, undecided // or the filter had not let it through
	}
	if !f.admits(rest[0], rest[1], rest[2]) {
		return m, v
	}
	k := [3]byte{rest[0], rest[1], rest[2]}
	for _, l := range f.literals[k] {
		consider(l.at(rest, i, final, flush))
	}
	for s := range f.shapes[k] {
		consider(f.shapes[k][s].at(b, i, final, flush))
	}
	return m, v
}
