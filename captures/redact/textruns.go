package redact

import (
	"math/bits"

	"unwire/captures/redact/internal/syntax"
	"unwire/captures/redact/internal/textrun"
)

// Limits for the two ways to skip bytes: by pairs, which is faster in text, and by runs of text, which is faster
// in all other bytes.
const (
	// leastPairs is how many bytes are first searched by pairs.
	leastPairs = 64

	// mostPairs is how many bytes are searched by pairs after text was met.
	mostPairs = 512
)

// startsRun reports whether s begins with enough text for nextRun to find it.
func startsRun(s string) bool {
	for i := range min(len(s), textrun.Least) {
		if !textrun.IsText(s[i]) {
			return false
		}
	}
	return true
}

// startsWide reports whether s begins with enough text in UTF-16 for nextRun to find it.
func startsWide(s string) bool {
	if len(s) < textrun.LeastWide {
		return false
	}
	for i := range textrun.LeastWide {
		if textrun.IsText(s[i]) != (textrun.IsText(s[0]) == (i%2 == 0)) {
			return false
		}
	}
	return true
}

// nextRun is next for bytes that are mostly not text. It returns a position at which something begins, or one
// before which nothing begins. from is the first position at which something may begin; it is at least
// leastPairs bytes before i.
//
// Whatever is searched for contains a run of text: a sign is in a run of four bytes, because it is between a
// name and a value, and a literal or a shape begins with a run of seven. A literal in UTF-16 has text at every
// second byte. If there are literals without such a run, anyByte is set.
func (f *ruleset) nextRun(b []byte, i, from int) (at int, begins bool) {
	window := i - textrun.AroundSign + 1
	for {
		var places uint64
		window, places = textrun.Next(b, window, f.wide)
		if places == 0 {
			return max(from, window-textrun.LeastWide), false
		}
		for ; places != 0; places &= places - 1 {
			at := window + bits.TrailingZeros64(places)
			if f.sign[b[at]] && f.signBegins(b, at) || f.admits(b[at:]) {
				return at, true
			}
		}
		window += textrun.Stride
	}
}

// signBegins reports whether the bytes around position i permit that the sign there begins something.
func (f *ruleset) signBegins(b []byte, i int) bool {
	if f.pairs[pairOf(b[i], b[i+1])]&beginsHere == 0 || f.pairs[pairOf(b[i-1], b[i])]&beginsAfter == 0 {
		return false
	}
	return syntax.MayBegin(b, i)
}
