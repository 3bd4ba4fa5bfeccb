package captures

import (
	"bytes"
	"slices"
)

const (
	maxSection  = 4 << 20   // compressed bytes that are held to be rewritten
	maxInflated = 64 << 20  // inflated bytes that are searched
	sectionLag  = 256 << 10 // what an inflater may have taken in and not given out
)

// A section is a run of compressed bytes that passes: a body or a message.
type section struct {
	b         *body
	start, at int64 // positions in the direction: of the run and of what comes next
	written   int64 // up to here it has been let go
	raw       []byte
	lost      bool // raw is no longer whole: it cannot be rewritten
	found     bool // a secret is in it
	inflater  *inflater
	inflated  int64
	scan      *scanner
}

func newSection(b *body, start int64) *section {
	s := &section{b: b, start: start, at: start, written: start, scan: newScanner(b.r, false)}
	s.scan.hit = func(int64, int64, string) { s.found = true }
	s.inflater = newInflater(&b.codecs, b.encoding, func(p []byte) bool {
		s.inflated += int64(len(p))
		s.scan.feed(p)
		return s.inflated < maxInflated
	})
	return s
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
	if s.lost {
		s.letGo(s.at - sectionLag)
	}
}

// release lets everything go, though more may come.
func (s *section) release() {
	s.scan.hurry()
	s.lost = true
	s.letGo(s.at)
}

// letGo gives up rewriting: what is clean is decided up to a position; if a
// secret was found, all that has not been written is overwritten.
func (s *section) letGo(upTo int64) {
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
	s.scan.finish()
	switch {
	case s.lost:
		s.letGo(s.at)
		return nil, false
	case err != nil && s.inflated == 0:
		s.searchRaw()
		return nil, false
	case !s.found:
		return nil, false
	}
	if err == nil {
		data, err = s.rewrite()
	}
	if err != nil {
		s.letGo(s.at)
		return nil, false
	}
	s.b.edit(s.start, s.at, data)
	return data, true
}

// searchRaw looks at bytes that were said to be compressed and are not.
func (s *section) searchRaw() {
	sc := newScanner(s.b.r, false)
	sc.base = s.start
	sc.hit = s.b.replace
	sc.feed(s.raw)
	sc.finish()
}

// rewrite inflates the section, takes the secrets out and compresses it by
// the same codec.
func (s *section) rewrite() ([]byte, error) {
	var plain []byte
	all := newInflater(&s.b.codecs, s.b.encoding, func(p []byte) bool {
		plain = append(plain, p...)
		return len(plain) < maxInflated
	})
	all.feed(s.raw)
	if err := all.close(); err != nil {
		return nil, err
	}
	return deflate(all.encoding, s.b.r.Bytes(plain))
}

// Bytes returns a copy of p in which placeholders of the secrets' lengths stand
// for the secrets.
func (r *Redactor) Bytes(p []byte) []byte { return r.mask(p, nil) }

// mask is Bytes, and reports what it replaces.
func (r *Redactor) mask(p []byte, report reporter) []byte {
	out := slices.Clone(p)
	sc := newScanner(r, false)
	sc.see = report.match(0)
	sc.hit = func(start, end int64, secret string) { copy(out[start:end], fill(r, secret, int(end-start))) }
	sc.feed(p)
	sc.finish()
	return out
}
