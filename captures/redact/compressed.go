package redact

import (
	"bytes"
	"cmp"
	"slices"

	"unwire/captures"
)

const (
	// maxSection is the largest number of compressed bytes that are held back in order to rewrite them.
	maxSection = 4 << 20
	// maxInflated is the largest number of decompressed bytes that are searched.
	maxInflated = 256 << 20
	// sectionLag is the largest number of compressed bytes that a decoder may have read without returning their
	// content.
	sectionLag = 256 << 10
)

// A section is the compressed data of a body or message that is being received. It is decompressed and
// searched, and rewritten if it contains a secret.
type section struct {
	// b is the filter of the body that contains the compressed data.
	b *BodyFilter

	// start is the position of the compressed data in the body.
	start int64
	// at is the position in the body of the next bytes of the compressed data.
	at int64

	// written is the position in the body up to which the compressed bytes were released.
	written int64

	// raw are the compressed bytes so far, unless some of them were dropped.
	raw []byte
	// lost means that some of the compressed bytes were dropped, so that the data cannot be rewritten.
	lost bool
	// released means that compressed bytes were released before all of them were searched.
	released bool
	// detect means that no header declares compression, so that it must be detected by the first bytes.
	detect bool
	// guessed means that compression was detected only by the first bytes.
	guessed bool
	// found means that the compressed data contains a secret.
	found bool

	// inflater decompresses the data.
	inflater *inflater
	// inflated is the number of decompressed bytes so far.
	inflated int64

	// scan searches the decompressed data, unless that has a further encoding.
	scan *scanner
	// inner searches decompressed data that has a further encoding; nil if it has none.
	inner *BodyFilter
	// headers are the headers that describe the decompressed data.
	headers captures.Headers

	// plain searches the compressed bytes themselves, if they cannot be decompressed.
	plain *scanner
}

// newSection returns the section that begins at position start of the body of b.
func newSection(b *BodyFilter, start int64) *section {
	s := &section{b: b, start: start, at: start, written: start, scan: newScanner(b.r, false)}
	s.scan.syntax = b.scan.syntax
	s.scan.hit = func(int64, int64, string) { s.found = true }
	s.inflater = newInflater(&b.codecs, b.encoding, func(p []byte) bool {
		s.inflated += int64(len(p))
		s.search(p)
		return s.inflated < maxInflated
	})
	return s
}

// nest makes the section treat its decompressed data as a body with the headers h, which may be encoded
// further.
func (s *section) nest(h captures.Headers) {
	s.inner, s.headers = newBodyFilter(s.b.r, h, s.b.scan.syntax), h
}

// search searches the next decompressed bytes of the section.
func (s *section) search(p []byte) {
	if s.inner == nil {
		s.scan.feed(p)
		return
	}
	s.inner.Write(&captures.Chunk{Data: p})
	s.inner.Ready()
	s.found = s.found || s.inner.edited
}

// endSearch ends the search of the decompressed data. It returns the reason why not all of it was searched, or
// "".
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

// decided returns the position in the body up to which bytes will not change any more.
func (s *section) decided() int64 { return s.written }

// feed decompresses and searches the next compressed bytes p, whose position in the body is at.
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

// giveUpRewriting ends the attempt to rewrite the section. If no secret was found, the bytes up to the position
// upTo are released unchanged; otherwise all bytes that were not released are overwritten.
func (s *section) giveUpRewriting(upTo int64) {
	s.raw = nil

	// The position of the secret in the compressed bytes is unknown, so overwrite all of them.
	if s.found {
		s.b.edit(s.written, s.at, bytes.Repeat([]byte("x"), int(s.at-s.written)))
		upTo = s.at
	}
	s.written = max(s.written, upTo)
}

// finish ends the section. If the section contained a secret and could be rewritten, ok is true, and data is
// its new content.
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
		s.unsearched("a secret was found only after its beginning had been written")
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

// unsearched reports that the section could not be searched completely.
func (s *section) unsearched(reason string) {
	s.b.note(Unsearched{Start: s.start, End: s.at, Reason: reason, message: s.b.framed != unframed})
}

// searchPlain searches compressed bytes that cannot be decompressed. at is their position in the body.
func (s *section) searchPlain(p []byte, at int64) {
	if s.plain == nil {
		s.plain = newScanner(s.b.r, false)
		s.plain.syntax = s.b.scan.syntax
		s.plain.base = at
		s.plain.hit = s.b.replace
	}
	s.plain.feed(p)
}

// rewrite returns the section with its secrets replaced, compressed again with the same codec.
func (s *section) rewrite() ([]byte, error) {
	var out bytes.Buffer
	w, err := newCompressor(s.inflater.encoding, &out)
	if err != nil {
		return nil, err
	}

	// Search again: the first search only determined whether there is a secret.
	b := newBodyFilter(s.b.r, s.headers, s.b.scan.syntax)
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
