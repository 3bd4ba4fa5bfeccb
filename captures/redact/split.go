package redact

import (
	"bytes"
	"slices"
)

// Bounds of a secret that stands in two places, as in two messages or two events.
const (
	// leastHead and leastRest are how many bytes of it stand in the first place and in the
	// second; fewer are left.
	leastHead, leastRest = 7, 3

	// leastTail is the length of a secret that is found though its first bytes are elsewhere.
	leastTail = 24

	// maxApart is how many bytes may stand between them.
	maxApart = 1 << 10

	// maxSplits is how many are looked for at once.
	maxSplits = 8
)

// A split is a known secret of which the beginning was found. It is replaced once the rest is
// found, or if hardly any rest is missing: many secrets begin alike.
type split struct {
	from   int64 // position of the beginning
	have   int   // bytes of it
	secret string
}

// rest is what has not been found.
func (p *split) rest() string { return p.secret[p.have:] }

// isMost reports whether hardly any of it is missing.
func (p *split) isMost() bool { return 4*p.have >= 3*len(p.secret) }

// end is the position from which on the rest is not looked for.
func (p *split) end() int64 { return p.from + int64(p.have+maxApart+len(p.rest())) }

// beginsSplit returns how much of a learned secret stands at the beginning of p, if it is long
// enough and not the whole.
func (f *ruleset) beginsSplit(p []byte) (secret string, n int) {
	if len(p) < leastHead || !f.admits(p[0], p[1], p[2]) || !f.mayHold(p) {
		return "", 0
	}
	k := [3]byte{p[0], p[1], p[2]}
	for _, list := range [...][]literal{f.literals[k], f.older[k]} {
		for _, l := range list {
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

// addSplit notes that a known secret may begin at the undecided byte and go on elsewhere.
func (s *scanner) addSplit(f *ruleset) {
	if s.split == nil || len(s.splits) == maxSplits {
		return
	}
	if secret, n := f.beginsSplit(s.buf[s.pos:]); n > 0 {
		s.splits = append(s.splits, split{from: s.decided(), have: n, secret: secret})
	}
}

// findRests looks for the rests of secrets in what is at hand.
func (s *scanner) findRests() {
	end := s.base + int64(len(s.buf))
	s.splits = slices.DeleteFunc(s.splits, func(p split) bool {
		rest := []byte(p.rest())
		from := max(0, p.from+int64(p.have)-s.base)
		if len(rest) < leastRest {
			s.split(p.from, p.from+int64(p.have), p.secret)
			return true
		}
		if from < int64(len(s.buf)) {
			if i := bytes.Index(s.buf[from:], rest); i >= 0 && i <= maxApart {
				s.split(p.from, p.from+int64(p.have), p.secret)
				at := s.base + from + int64(i)
				s.split(at, at+int64(len(rest)), "")
				return true
			}
		}
		if end < p.end() {
			return false
		}
		if p.isMost() {
			s.split(p.from, p.from+int64(p.have), p.secret)
		}
		return true
	})
}

// endSplits gives up looking for rests.
func (s *scanner) endSplits() {
	for i := range s.splits {
		if p := &s.splits[i]; p.isMost() {
			s.split(p.from, p.from+int64(p.have), p.secret)
		}
	}
	s.splits = s.splits[:0]
}

// firstSplit returns the position of the first beginning whose rest is looked for, or upTo.
func (s *scanner) firstSplit(upTo int64) int64 {
	for i := range s.splits {
		upTo = min(upTo, s.splits[i].from)
	}
	return upTo
}
