package transcript

import (
	"cmp"
	"strconv"
	"strings"

	"unwire/decode/transcript/language"
)

const (
	// minChanges is the minimum number of times that a number changes between consecutive pieces if it
	// distinguishes interleaved texts.
	minChanges = 2

	// minSharedFrames is the minimum number of frames that contain pieces of several texts.
	minSharedFrames = 2

	// minFalls is the minimum number of times that the number decreases from one piece to the next.
	minFalls = 2

	// minBreaks is the minimum number of borders at which adjacent pieces do not continue each other.
	minBreaks = 2

	// minOpenShare is the minimum share of borders in one of the texts at which pieces continue each other.
	minOpenShare = 0.4
)

// isInterleaved reports whether number at (an index in c.numbers) next to the pieces of s distinguishes texts that
// were sent at the same time, such as several candidates. Pieces with the same number continue each other, while
// adjacent pieces do not, or share a frame. changes is how often the number changes.
func (c *collection) isInterleaved(s *stream, at int32, changes int) bool {
	if changes < minChanges {
		return false
	}
	// Group the pieces by the number.
	parts := make(map[int64][]textPiece)
	frames := make(map[int]map[int64]bool)
	several, falls := 0, 0
	last := int64(0)
	for _, p := range s.pieces {
		v := max(c.scalarOf(p.group, at), 0)
		if v < last {
			falls++
		}
		last = v
		if parts[v] = append(parts[v], p); len(parts) > maxVariants {
			return false
		}
		if frames[p.frame] == nil {
			frames[p.frame] = make(map[int64]bool)
		}
		if frames[p.frame][v] {
			// Two pieces of one text in a frame are elements of a list.
			return false
		}
		if frames[p.frame][v] = true; len(frames[p.frame]) == 2 {
			several++
		}
	}

	// Texts that are sent at the same time are readable apart, but not together.
	apart := 0.0
	var most []textPiece
	low, high := int64(maxVariants), int64(0)
	for v, part := range parts {
		low, high = min(low, v), max(high, v)
		if v >= maxVariants {
			// The number does not count texts.
			return false
		}
		apart += countBreaks(part)
		if len(part) > len(most) || len(part) == len(most) && comparePieces(part[0], most[0]) < 0 {
			most = part
		}
	}

	if several == 0 && changes == len(s.pieces)-1 && s.bytesEach() >= minWhole {
		// The texts alternate.
		return false
	}
	if len(most) < 2 || s.bytesEach() >= minWhole && language.EndsSentence(strings.TrimSpace(most[0].text)) && language.EndsSentence(strings.TrimSpace(most[1].text)) {
		// Each piece is a whole message.
		return false
	}
	if open, _ := borders(most); open < minOpenShare {
		if _, ok := grown(most); !ok {
			return false
		}
	}

	together := countBreaks(s.pieces)
	if several >= minSharedFrames && several*4 >= len(frames) {
		return true
	}
	// The numbers are consecutive, like an index.
	counts := low <= 1 && high-low == int64(len(parts))-1
	return c.marksEnds(s, at, parts) || together >= minBreaks && apart*2 < together || counts && falls >= minFalls && apart <= 1+1.2*together
}

// marksEnds reports whether some other number occurs next to the last pieces of several of the parts, and next to
// no other piece.
func (c *collection) marksEnds(s *stream, at int32, parts map[int64][]textPiece) bool {
	for _, mark := range c.groups[s.pieces[len(s.pieces)-1].group].scalars {
		if mark.at == at || mark.value == 0 {
			continue
		}
		ends := 0
		for _, part := range parts {
			for i, p := range part {
				switch marked := c.scalarOf(p.group, mark.at) > 0; {
				case marked && i < len(part)-1:
					return false
				case marked:
					ends++
				}
			}
		}
		if ends >= 2 {
			return true
		}
	}
	return false
}

// countBreaks returns the number of borders at which pieces do not continue each other; uncertain ones count in
// part.
func countBreaks(pieces []textPiece) float64 {
	n := 0.0
	for i := 1; i < len(pieces); i++ {
		n += language.BreakBetween(pieces[i-1].text, pieces[i].text)
	}
	return n
}

// compareInterleaved orders interleaved texts of one path by the number that distinguishes them. It returns 0 for
// other streams.
func compareInterleaved(a, b *stream) int {
	if !a.interleaved || !b.interleaved || a.path != b.path || a.label != b.label {
		return 0
	}
	x, _ := strconv.Atoi(a.variant)
	y, _ := strconv.Atoi(b.variant)
	return cmp.Compare(x, y)
}
