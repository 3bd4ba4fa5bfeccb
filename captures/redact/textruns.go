package redact

import (
	"math/bits"

	"unwire/captures/redact/internal/syntax"
	"unwire/captures/redact/internal/textrun"
)

// Limits for the two ways in which ruleset.next skips bytes: by pairs of bytes (nextPair), which is faster in
// text, and by runs of text (nextRun), which is faster in all other bytes.
const (
	// leastPairs is the number of bytes that are first searched by pairs.
	leastPairs = 64

	// mostPairs is the number of bytes that are searched by pairs after nextRun found text.
	mostPairs = 512
)

// startsRun reports whether s begins with a run of text that is long enough to be found by nextRun.
func startsRun(s string) bool {
	for i := range min(len(s), textrun.Least) {
		if !textrun.IsText(s[i]) {
			return false
		}
	}
	return true
}

// startsWide reports whether s begins with UTF-16 text that is long enough to be found by nextRun.
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

// nextRun implements next for bytes that are mostly not text. If begins is true, a match may begin at the index
// at. Otherwise no match begins between from and at. from is the first index at which a match may begin; it is
// at least leastPairs before i.
//
// It relies on the fact that every match contains a run of text: a sign is in a run of four bytes, because it
// is between a name and a value, and a literal or a key shape begins with a run of seven. A literal in UTF-16
// has text at every second byte. If there are other literals, anyByte is set and nextRun is not used.
//
// Limits: a name with other bytes than text among its first three, such as "ätoken" in JSON, may be found only where most
// bytes around it are text.
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

// signBegins reports whether the bytes around index i permit that a match begins at the sign there.
func (f *ruleset) signBegins(b []byte, i int) bool {
	if f.pairs[pairOf(b[i], b[i+1])]&beginsHere == 0 || f.pairs[pairOf(b[i-1], b[i])]&beginsAfter == 0 {
		return false
	}
	return syntax.MayBegin(b, i)
}
