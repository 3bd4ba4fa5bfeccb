package redact

import (
	"bytes"
	"cmp"
	"slices"

	"unwire/captures"
)

const (
	maxSection  = 4 << 20   // compressed bytes that are held to be rewritten
	maxInflated = 256 << 20 // inflated bytes that are searched
	sectionLag  = 256 << 10 // what an inflater may have taken in and not given out
)

// A section is a run of compressed bytes that passes: a body or a message.
type section struct {
	b *BodyFilter

	// start and at are positions in the direction: of the run and of what comes next.
	start, at int64

	written  int64 // up to here it has been let go
	raw      []byte
	lost     bool // raw is no longer whole: it cannot be rewritten
	released bool // it was let go before it could be searched
	detect   bool // nothing says that it is compressed
	guessed  bool // nothing but its first bytes does
	found    bool // a secret is in it
	inflater *inflater
	inflated int64

	scan    *scanner         // searches what is inflated, unless
	inner   *BodyFilter      // does, because it has an encoding of its own, and
	headers captures.Headers // describe it

	// plain searches the compressed bytes, once they cannot be inflated any more.
	plain *scanner
}

func newSection(b *BodyFilter, start int64) *section {
	s := &section{b: b, start: start, at: start, written: start, scan: newScanner(b.r, false)}
	s.scan.hit = func(int64, int64, string) { s.found = true }
	s.inflater = newInflater(&b.codecs, b.encoding, func(p []byte) bool {
		s.inflated += int64(len(p))
		s.search(p)
		return s.inflated < maxInflated
	})
	return s
}

// nest has what is inflated searched as a body with headers h.
func (s *section) nest(h captures.Headers) { s.inner, s.headers = NewBodyFilter(s.b.r, h), h }

// search takes bytes that were inflated.
func (s *section) search(p []byte) {
	if s.inner == nil {
		s.scan.feed(p)
		return
	}
	s.inner.Write(&captures.Chunk{Data: p})
	s.inner.Ready()
	s.found = s.found || s.inner.edited
}

// endSearch ends what is inflated, and returns why not all of it was searched.
func (s *section) endSearch() (reason string) {
	if s.inner == nil {
		s.scan.finish()
		return ""
	}
	s.inner.Close(false)
	s.found = s.found || s.inner.edited
	for _, u := range s.inner.unsearched {
		if !u.cut {
			return u.Reason
		}
	}
	return ""
}

// decided is the position up to which nothing will change.
func (s *section) decided() int64 { return s.written }

// feed takes compressed bytes that stand at position at.
func (s *section) feed(p []byte, at int64) {
	s.at = at + int64(len(p))
	s.inflater.feed(p)
	if !s.lost {
		s.raw = append(s.raw, p...)
		s.lost = len(s.raw) > maxSection
	}
	if !s.lost {
		return
	}
	upTo := s.at - sectionLag
	if s.inflater.failed() != nil {
		if len(s.raw) > 0 {
			p, at = s.raw, s.start
		}
		s.searchPlain(p, at)
		upTo = s.plain.decided()
	}
	s.giveUpRewriting(upTo)
}

// release lets everything go, though more may come.
func (s *section) release() {
	if s.inner != nil {
		s.inner.FlushHeld()
		s.found = s.found || s.inner.edited
	} else {
		s.scan.flush()
	}
	s.lost, s.released = true, true
	s.giveUpRewriting(s.at)
}

// giveUpRewriting gives up rewriting: what is clean is decided up to a position; if a
// secret was found, all that has not been written is overwritten.
func (s *section) giveUpRewriting(upTo int64) {
	s.raw = nil
	if s.found {
		s.b.edit(s.written, s.at, bytes.Repeat([]byte("x"), int(s.at-s.written)))
		upTo = s.at
	}
	s.written = max(s.written, upTo)
}

// finish decides the section. If it was rewritten, ok is true and data is
// what takes its place.
func (s *section) finish() (data []byte, ok bool) {
	err := s.inflater.close()
	reason := s.endSearch()
	switch {
	case s.detect && s.inflated == 0, s.guessed:
		// Nothing said that it would inflate.
	case err != nil:
		s.unsearched(err.Error())
	case reason != "":
		s.unsearched(reason)
	case s.released && s.found:
		s.unsearched("a secret began in what was written before it was found")
	}
	if err != nil && !s.found && !s.lost {
		s.searchPlain(s.raw, s.start)
	}
	if s.plain != nil {
		s.plain.finish()
	}
	switch {
	case s.lost:
		s.giveUpRewriting(s.at)
		return nil, false
	case !s.found:
		return nil, false
	}
	if err == nil {
		data, err = s.rewrite()
	}
	if err != nil {
		s.giveUpRewriting(s.at)
		return nil, false
	}
	s.b.edit(s.start, s.at, data)
	return data, true
}

// unsearched notes the section.
func (s *section) unsearched(reason string) {
	s.b.note(Unsearched{Start: s.start, End: s.at, Reason: reason, message: s.b.framed != unframed})
}

// searchPlain looks at bytes, at a position, that do not inflate.
func (s *section) searchPlain(p []byte, at int64) {
	if s.plain == nil {
		s.plain = newScanner(s.b.r, false)
		s.plain.base = at
		s.plain.hit = s.b.replace
	}
	s.plain.feed(p)
}

// rewrite inflates the section, takes the secrets out and compresses it by
// the same codec.
func (s *section) rewrite() ([]byte, error) {
	var out bytes.Buffer
	w, err := newCompressor(s.inflater.encoding, &out)
	if err != nil {
		return nil, err
	}
	b := NewBodyFilter(s.b.r, s.headers)
	pass := func() {
		for _, c := range b.Ready() {
			if err == nil {
				_, err = w.Write(c.Data)
			}
		}
	}
	inflated := 0
	all := newInflater(&s.b.codecs, s.inflater.encoding, func(p []byte) bool {
		b.Write(&captures.Chunk{Data: slices.Clone(p)})
		pass()
		inflated += len(p)
		return err == nil && inflated < maxInflated
	})
	all.feed(s.raw)
	err = cmp.Or(all.close(), err)
	b.Close(false)
	pass()
	if err = cmp.Or(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
