package transcript

import (
	"strings"
	"unicode/utf8"

	"unwire/decode/transcript/language"
)

const (
	// minPlaced is the minimum number of pieces from which a number next to them is recognised as their position.
	minPlaced = 4

	// placedShare is the minimum share of pieces whose number agrees with the end of the previous piece.
	placedShare = 0.8

	// maxRestarts is the maximum number of borders between pieces that are examined for a restart of the text.
	maxRestarts = 1000

	// minRestart is the minimum size in bytes of the text that is sent again.
	minRestart = 16
)

// dropResent removes the pieces of s that were sent again or replaced: those whose number or offset occurred
// before, and the beginning of a text that was restarted.
func (c *collection) dropResent(s *stream) {
	if len(s.pieces) < minPlaced || s.discriminates {
		return
	}
	for _, at := range c.scalarsBeside(s) {
		if c.placeByOffset(s, at) || c.dropRenumbered(s, at) {
			break
		}
	}
	s.dropRestart()
}

// units measure a text in each possible unit of positions: bytes, code points and UTF-16 code units.
var units = [...]func(string) int64{
	func(s string) int64 { return int64(len(s)) },
	func(s string) int64 { return int64(utf8.RuneCountInString(s)) },
	func(s string) int64 {
		n := 0
		for _, r := range s {
			if n++; r > 0xffff {
				// UTF-16 needs a surrogate pair.
				n++
			}
		}
		return int64(n)
	},
}

// placeByOffset reports whether number at (an index in c.numbers) next to the pieces is the offset of each piece in
// the text. If so, a piece replaces the text from its offset on.
func (c *collection) placeByOffset(s *stream, at int32) bool {
	if c.scalarOf(s.pieces[0].group, at) > 0 {
		// The first offset of a text is 0.
		return false
	}
	for _, unit := range units {
		// fits counts pieces that begin where the one before ends; long and longFits
		// count only steps after pieces longer than one unit.
		fits, long, longFits := 0, 0, 0
		end, size := int64(-1), int64(0)
		for _, p := range s.pieces {
			v := max(c.scalarOf(p.group, at), 0)
			if size > 1 {
				long++
			}
			if v == end {
				if fits++; size > 1 {
					longFits++
				}
			}
			size = unit(p.text)
			end = v + size
		}
		// A number that counts pieces also agrees with pieces of one unit.
		if float64(fits) < placedShare*float64(len(s.pieces)-1) || longFits < minPlaced-2 || float64(longFits) < placedShare*float64(long) && longFits < long-1 {
			continue
		}
		s.hasOffsets = true
		if fits == len(s.pieces)-1 {
			return true
		}
		var out []textPiece

		// Remove the pieces behind each offset before the piece is added.
		var starts []int64
		for _, p := range s.pieces {
			v := max(c.scalarOf(p.group, at), 0)
			for len(starts) > 0 && starts[len(starts)-1] >= v {
				out, starts = out[:len(out)-1], starts[:len(starts)-1]
			}
			if n := len(starts); n > 0 {
				out[n-1].text = upTo(out[n-1].text, v-starts[n-1], unit)
			}
			out, starts = append(out, p), append(starts, v)
		}
		s.pieces = out
		return true
	}
	return false
}

// upTo returns the first n units of text, or all of it if it is shorter. unit measures a text.
func upTo(text string, n int64, unit func(string) int64) string {
	if unit(text) <= n {
		return text
	}
	for i := range text {
		if unit(text[:i]) >= n {
			return text[:i]
		}
	}
	return text
}

// dropRenumbered reports whether number at (an index in c.numbers) counts the pieces of s. If so, it removes the
// pieces whose number occurred before with the same text.
func (c *collection) dropRenumbered(s *stream, at int32) bool {
	texts := make(map[int64]string, len(s.pieces))
	rises, again := 0, 0
	last := int64(-2)
	for _, p := range s.pieces {
		v := c.scalarOf(p.group, at)
		if v > last {
			rises++
		}
		last = v
		if text, ok := texts[v]; ok {
			// The same number with another text: it does not count the pieces.
			if text != p.text {
				return false
			}
			again++
		}
		texts[v] = p.text
	}

	if again == 0 || float64(rises) < placedShare*float64(len(s.pieces)) || len(texts) < minPlaced {
		return false
	}

	seen := make(map[int64]bool, len(texts))
	var out []textPiece
	for _, p := range s.pieces {
		if v := c.scalarOf(p.group, at); !seen[v] {
			seen[v] = true
			out = append(out, p)
		}
	}
	s.pieces = out
	return true
}

// dropRestart removes the beginning of a text that stopped inside a sentence and was then
// sent again from its start.
func (s *stream) dropRestart() {
	full := concat(s.pieces, "")
	end := 0
	for i := range s.pieces[:min(len(s.pieces)-1, maxRestarts)] {
		end += len(s.pieces[i].text)
		if end*2 > len(full) {
			return
		}
		first, rest := full[:end], full[end:]
		if end < minRestart || s.pieces[i+1].frame-s.pieces[i].frame < 2 || language.EndsSentence(strings.TrimRight(first, " ")) || strings.HasSuffix(first, "\n") || !strings.HasPrefix(rest, first) {
			continue
		}
		s.pieces = s.pieces[i+1:]
		return
	}
}
