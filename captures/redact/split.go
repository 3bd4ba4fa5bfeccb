package redact

import (
	"bytes"
	"slices"
)

// Limits for a learned secret that is divided between several places, as by the messages or events of a stream.
const (
	// leastHead and leastRest are the least number of its bytes in all places but the last, and in the last. A
	// shorter part is not replaced.
	leastHead, leastRest = 7, 3

	// maxParts limits the places.
	maxParts = 8

	// leastTail is the least length of a secret whose end alone is recognized.
	leastTail = 24

	// maxApart is the greatest number of bytes between two places.
	maxApart = 1 << 10

	// maxSplits limits the divided secrets that are searched for at the same time.
	maxSplits = 8
)

// A split is a learned secret of which only the beginning was found so far. What was found is replaced if the
// rest is found too, or if it is nearly all: many secrets begin alike.
type split struct {
	// The positions of the parts that were found. The first is the beginning.
	parts []span
	// The number of bytes that were found.
	have   int
	secret string
}

// A span is a range of bytes of a body.
type span struct{ from, to int64 }

// rest returns the bytes that were not found yet.
func (p *split) rest() string { return p.secret[p.have:] }

// isMost reports whether at least three quarters were found.
func (p *split) isMost() bool { return 4*p.have >= 3*len(p.secret) }

// from returns the position of the beginning.
func (p *split) from() int64 { return p.parts[0].from }

// last returns the position after the last part.
func (p *split) last() int64 { return p.parts[len(p.parts)-1].to }

// end returns the position at which the search for the rest ends.
func (p *split) end() int64 { return p.last() + int64(maxApart+len(p.rest())) }

// beginsSplit returns the learned secret of which p contains the longest beginning, and the length n of
// that beginning. It returns "" if p contains the complete secret, or fewer than leastHead bytes of it.
func (f *ruleset) beginsSplit(p []byte) (secret string, n int) {
	if len(p) < leastHead || !f.admits(p) || !f.mayHold(p) {
		return "", 0
	}
	k := [3]byte{p[0], p[1], p[2]}
	for _, list := range [...][]literal{f.literals[k], f.older[k]} {
		for _, l := range list {
			// Only the unencoded secret is searched for in two places.
			if l.spelt != l.secret || len(l.secret) < 2*leastHead {
				continue
			}
			if m := commonPrefix(p, l.spelt); m > n && m < len(l.spelt) {
				secret, n = l.secret, m
			}
		}
	}
	if n < leastHead {
		return "", 0
	}
	return secret, n
}

func commonPrefix(p []byte, s string) int {
	n := 0
	for n < len(p) && n < len(s) && p[n] == s[n] {
		n++
	}
	return n
}

// addSplit notes that a learned secret may begin at the undecided byte and continue elsewhere.
func (s *scanner) addSplit(f *ruleset) {
	if s.split == nil || len(s.splits) == maxSplits {
		return
	}
	if secret, n := f.beginsSplit(s.buf[s.pos:]); n > 0 {
		s.splits = append(s.splits, split{parts: []span{{s.decided(), s.decided() + int64(n)}}, have: n, secret: secret})
	}
}

// findRests searches the buffer for the rests of the divided secrets. final means that no bytes follow which belong
// to those in the buffer.
func (s *scanner) findRests(final bool) {
	end := s.base + int64(len(s.buf))
	for i := range s.splits {
		for p := &s.splits[i]; !s.findRest(p) && s.findPart(p, final); {
		}
	}
	s.splits = slices.DeleteFunc(s.splits, func(p split) bool {
		// So short a rest would be found by chance, and need not be replaced.
		found := len(p.rest()) < leastRest
		if found || end >= p.end() && p.isMost() {
			s.replaceParts(&p)
		}
		return found || end >= p.end()
	})
}

// findRest adds the part with all that is missing. It reports whether that is in the buffer.
func (s *scanner) findRest(p *split) bool {
	from := max(0, p.last()-s.base)
	if from >= int64(len(s.buf)) || len(p.rest()) < leastRest {
		return false
	}
	i := bytes.Index(s.buf[from:], []byte(p.rest()))
	if i < 0 || i > maxApart {
		return false
	}

	// If an earlier part was found by chance, more of the secret precedes the rest.
	start, have := int(from)+i, p.have
	for start > int(from) && have > 0 && s.buf[start-1] == p.secret[have-1] {
		start, have = start-1, have-1
	}
	p.parts = append(p.parts, span{s.base + int64(start), s.base + from + int64(i+len(p.rest()))})
	p.have = len(p.secret)
	return true
}

// findPart searches the buffer for the next piece of a divided secret and adds it to p. It reports whether it found one.
// final means that nothing follows the buffer.
func (s *scanner) findPart(p *split, final bool) bool {
	from := max(0, p.last()-s.base)
	if len(p.parts) == maxParts || len(p.rest()) < leastHead+leastRest || from >= int64(len(s.buf)) {
		return false
	}
	i := bytes.Index(s.buf[from:], []byte(p.rest()[:leastHead]))
	if i < 0 || i > maxApart {
		return false
	}
	at := int(from) + i
	n := commonPrefix(s.buf[at:], p.rest())

	// The part may continue in the bytes that follow.
	if at+n == len(s.buf) && !final {
		return false
	}
	p.parts = append(p.parts, span{s.base + int64(at), s.base + int64(at+n)})
	p.have += n
	return true
}

// replaceParts replaces the parts that were found.
func (s *scanner) replaceParts(p *split) {
	secret := p.secret
	for _, part := range p.parts {
		s.split(part.from, part.to, secret)
		secret = ""
	}
}

// endSplits ends the search for the rests.
func (s *scanner) endSplits() {
	for i := range s.splits {
		if p := &s.splits[i]; p.isMost() {
			s.replaceParts(p)
		}
	}
	s.splits = s.splits[:0]
}

// firstSplit returns the position of the first incomplete secret whose rest is still searched for, or
// upTo if that is smaller.
func (s *scanner) firstSplit(upTo int64) int64 {
	for i := range s.splits {
		upTo = min(upTo, s.splits[i].from())
	}
	return upTo
}
