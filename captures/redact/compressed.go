package redact

import (
	"bytes"
	"cmp"
	"slices"

	"unwire/captures"
)

const (
	// Bytes of compressed data that are held to be rewritten.
	maxSection = 4 << 20
	// Bytes of decompressed data that are searched.
	maxInflated = 256 << 20
	// Bytes that a decoder may have read without returning their content yet.
	sectionLag = 256 << 10
)

// A section is compressed data that is being received: a body or a message.
type section struct {
	b *BodyFilter

	// start is the position of the section in the body, and at the position of the next bytes.
	start, at int64

	// written is the position up to which the section's bytes were released.
	written int64
	raw     []byte
	// raw is incomplete, so the section cannot be rewritten.
	lost bool
	// released means that the section was released before it was searched completely.
	released bool
	// detect means that no header declares compression, so that it must be detected by the first bytes.
	detect bool
	// guessed means that compression was detected only by the first bytes.
	guessed bool
	// found means that the section contains a secret.
	found    bool
	inflater *inflater
	inflated int64

	// scan searches the decompressed data; it is not used if inner is set.
	scan *scanner
	// inner searches decompressed data that has a further encoding; nil if it has none.
	inner *BodyFilter
	// headers are the headers that describe the decompressed data.
	headers captures.Headers

	// plain searches the compressed bytes themselves, if they cannot be decompressed.
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

// nest makes the section search its decompressed data like a body with the headers h.
func (s *section) nest(h captures.Headers) { s.inner, s.headers = NewBodyFilter(s.b.r, h), h }

// search searches the next decompressed bytes.
func (s *section) search(p []byte) {
	if s.inner == nil {
		s.scan.feed(p)
		return
	}
	s.inner.Write(&captures.Chunk{Data: p})
	s.inner.Ready()
	s.found = s.found || s.inner.edited
}

// endSearch ends the decompressed data, and returns the reason why not all of it was searched, or "".
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

// decided returns the position up to which nothing will change.
func (s *section) decided() int64 { return s.written }

// feed decompresses and searches the compressed bytes at position at.
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

	// The decoder may not have returned the content of the last bytes yet.
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

// release releases all held bytes of the compressed section, although the section may continue.
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

// giveUpRewriting ends the attempt to rewrite the section. If no secret was found, the bytes up to upTo are
// decided; else all that was not released is overwritten.
func (s *section) giveUpRewriting(upTo int64) {
	s.raw = nil

	// The position of the secret in the compressed bytes is unknown, so overwrite all of them.
	if s.found {
		s.b.edit(s.written, s.at, bytes.Repeat([]byte("x"), int(s.at-s.written)))
		upTo = s.at
	}
	s.written = max(s.written, upTo)
}

// finish decides the section. If it was rewritten, ok is true, and data replaces it.
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

	// Without the content, at least search the compressed bytes.
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

// unsearched notes that the section could not be searched.
func (s *section) unsearched(reason string) {
	s.b.note(Unsearched{Start: s.start, End: s.at, Reason: reason, message: s.b.framed != unframed})
}

// searchPlain searches bytes at position at that cannot be decompressed.
func (s *section) searchPlain(p []byte, at int64) {
	if s.plain == nil {
		s.plain = newScanner(s.b.r, false)
		s.plain.base = at
		s.plain.hit = s.b.replace
	}
	s.plain.feed(p)
}

// rewrite decompresses the section, replaces its secrets, and compresses it again with the same codec.
func (s *section) rewrite() ([]byte, error) {
	var out bytes.Buffer
	w, err := newCompressor(s.inflater.encoding, &out)
	if err != nil {
		return nil, err
	}

	// Search again: the first search only determined whether there is a secret.
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
