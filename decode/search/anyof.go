package search

import "bytes"

const (
	// leastInSet is the minimum length in bytes of a text in a literalSet.
	leastInSet = 2

	// maxSetPrefix is how many bytes at the beginning of the texts in a literalSet are compared at once, at most.
	maxSetPrefix = 8
)

// IsLiteral reports whether AnyOf accepts the pattern.
func (t *Text) IsLiteral() bool {
	return t.re == nil && t.set == nil && !t.fold && len(t.literal) >= leastInSet
}

// AnyOf returns a pattern that matches where one of several patterns does, and costs as much as one of them. ok is
// false if a pattern is not a literal of two bytes or more, or ignores case.
func AnyOf(texts []*Text) (t *Text, ok bool) {
	set := &literalSet{prefixLen: maxSetPrefix, byPrefix: make(map[string][][]byte)}
	for _, one := range texts {
		if !one.IsLiteral() {
			return nil, false
		}
		set.prefixLen = min(set.prefixLen, len(one.literal))
	}
	for _, one := range texts {
		pair := pairOf(one.literal)
		set.pairs[pair/64] |= 1 << (pair % 64)
		prefix := string(one.literal[:set.prefixLen])
		set.byPrefix[prefix] = append(set.byPrefix[prefix], one.literal)
	}
	return &Text{set: set}, true
}

// A literalSet finds the first of several literals in one pass over the data: most positions are excluded by their
// first two bytes, and almost all others by the first prefixLen bytes.
type literalSet struct {
	// pairs is a bit set of the first two bytes of the literals, by pairOf.
	pairs [1 << 16 / 64]uint64

	// prefixLen is the length in bytes of the keys of byPrefix, which no literal is shorter than.
	prefixLen int

	// byPrefix are the literals by their first prefixLen bytes.
	byPrefix map[string][][]byte
}

// pairOf returns the first two bytes of p as a number.
func pairOf(p []byte) int { return int(p[0])<<8 | int(p[1]) }

// find returns the start and end offsets of the first match in data at or after offset from.
func (l *literalSet) find(data []byte, from int) (lo, hi int, ok bool) {
	for i := from; i+l.prefixLen <= len(data); i++ {
		pair := pairOf(data[i:])
		if l.pairs[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		// A conversion in an index expression allocates nothing.
		for _, literal := range l.byPrefix[string(data[i:i+l.prefixLen])] {
			if bytes.HasPrefix(data[i:], literal) {
				return i, i + len(literal), true
			}
		}
	}
	return 0, 0, false
}
