package redact

import (
	"bytes"
	"slices"
)

// Limits for a learned secret that is divided into parts with other bytes between them, as by the messages or
// events of a stream.
const (
	// leastHead is the smallest number of the secret's bytes in each part but the last, and leastRest in the
	// last. A shorter part is not replaced.
	leastHead, leastRest = 7, 3

	// maxParts is the greatest number of parts.
	maxParts = 8

	// leastTail is the smallest length of a secret whose end alone, without its first bytes, is recognised.
	leastTail = 24

	// maxApart is the greatest number of bytes between two parts.
	maxApart = 1 << 10

	// maxSplits limits the divided secrets that are searched for at the same time.
	maxSplits = 8
)

// A split is a learned secret of which only the first parts were found so far. The parts are replaced if the
// rest is found too, or if they are at least three quarters of the secret. Otherwise they may be a coincidence,
// because many secrets begin alike.
type split struct {
	// parts are the positions in the body of the parts that were found, in order.
	parts []span
	// have is the number of bytes of the secret that were found so far.
	have int

	// secret is the whole secret, of which only a part was found so far.
	secret string
}

// A span is a range of bytes of a body.
type span struct {
	// from is the offset of the first byte of the range.
	from int64
	// to is the offset after the last byte of the range.
	to int64
}

// rest returns the bytes of the secret that were not found yet.
func (p *split) rest() string { return p.secret[p.have:] }

// isMost reports whether at least three quarters of the secret were found.
func (p *split) isMost() bool { return 4*p.have >= 3*len(p.secret) }

// from returns the position at which the secret's first part begins.
func (p *split) from() int64 { return p.parts[0].from }

// last returns the position after the last part that was found.
func (p *split) last() int64 { return p.parts[len(p.parts)-1].to }

// end returns the position in the body at which the search for the rest is given up.
func (p *split) end() int64 { return p.last() + int64(maxApart+len(p.rest())) }

// beginsSplit returns the learned secret whose beginning is the longest at the start of p, and the length n of
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

// commonPrefix returns the number of bytes at the beginning of p and s that are equal.
func commonPrefix(p []byte, s string) int {
	n := 0
	for n < len(p) && n < len(s) && p[n] == s[n] {
		n++
	}
	return n
}

// addSplit checks whether a learned secret begins at the next undecided byte without being complete, and starts
// the search for its rest.
func (s *scanner) addSplit(f *ruleset) {
	if s.split == nil || len(s.splits) == maxSplits {
		return
	}
	if secret, n := f.beginsSplit(s.buf[s.pos:]); n > 0 {
		s.splits = append(s.splits, split{parts: []span{{s.decided(), s.decided() + int64(n)}}, have: n, secret: secret})
	}
}

// findRests searches the buffer for the rests of divided secrets, and replaces those that are complete. final
// means that no bytes follow the buffer.
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

// findRest searches the buffer for all missing bytes of a divided secret, and adds them as a part. It reports
// whether it found them.
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

// findPart searches the buffer for the next part of a divided secret and adds it to p. It reports whether it
// found one. final means that no bytes follow the buffer.
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

// replaceParts calls split with each part that was found, so that it is replaced.
func (s *scanner) replaceParts(p *split) {
	secret := p.secret
	for _, part := range p.parts {
		s.split(part.from, part.to, secret)
		secret = ""
	}
}

// endSplits gives up the search for the rests of divided secrets, and replaces those of which most was found.
func (s *scanner) endSplits() {
	for i := range s.splits {
		if p := &s.splits[i]; p.isMost() {
			s.replaceParts(p)
		}
	}
	s.splits = s.splits[:0]
}

// firstSplit returns the position of the first divided secret whose rest is still searched for, or upTo if that
// is smaller. Bytes from there on must be held back.
func (s *scanner) firstSplit(upTo int64) int64 {
	for i := range s.splits {
		upTo = min(upTo, s.splits[i].from())
	}
	return upTo
}
