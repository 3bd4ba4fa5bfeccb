package transcript

import (
	"strings"
	"unicode/utf8"
)

const (
	minPlaced   = 4    // pieces whose places are told by a number
	placedShare = 0.8  // of the steps from one to the next that fit
	maxRestarts = 1000 // borders at which a text may begin again
	minRestart  = 16   // bytes of a text that begins again
)

// dropResent drops the pieces of s that were sent again, or were taken back: those
// that a number beside them counts, or says the place of, and a text that is
// begun from its beginning.
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

// units are what the places in a text are counted in.
var units = [...]func(string) int64{
	func(s string) int64 { return int64(len(s)) },
	func(s string) int64 { return int64(utf8.RuneCountInString(s)) },
	func(s string) int64 {
		n := 0
		for _, r := range s {
			if n++; r > 0xffff {
				n++ // a surrogate pair
			}
		}
		return int64(n)
	},
}

// placeByOffset reports whether the number at is where each piece is written in the text,
// and if so writes them there.
func (c *collection) placeByOffset(s *stream, at int32) bool {
	if c.scalarOf(s.pieces[0].group, at) > 0 {
		return false // a text is written from its beginning on
	}
	for _, unit := range units {
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
		// What counts the pieces fits those of one rune, too.
		if float64(fits) < placedShare*float64(len(s.pieces)-1) || longFits < minPlaced-2 || float64(longFits) < placedShare*float64(long) && longFits < long-1 {
			continue
		}
		s.hasOffsets = true
		if fits == len(s.pieces)-1 {
			return true
		}
		var out []piece
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

// upTo is the beginning of text that is n units long, or all of it.
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

// dropRenumbered reports whether the number at counts the pieces of s, and drops those
// whose number was there before with the same text: they were sent again.
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
	var out []piece
	for _, p := range s.pieces {
		if v := c.scalarOf(p.group, at); !seen[v] {
			seen[v] = true
			out = append(out, p)
		}
	}
	s.pieces = out
	return true
}

// dropRestart drops the beginning of a text that broke off in the middle of a
// sentence, behind which it was sent from its beginning.
func (s *stream) dropRestart() {
	full := concat(s.pieces, "")
	end := 0
	for i := range s.pieces[:min(len(s.pieces)-1, maxRestarts)] {
		end += len(s.pieces[i].text)
		if end*2 > len(full) {
			return
		}
		first, rest := full[:end], full[end:]
		if end < minRestart || s.pieces[i+1].frame-s.pieces[i].frame < 2 || endsSentence(strings.TrimRight(first, " ")) || strings.HasSuffix(first, "\n") || !strings.HasPrefix(rest, first) {
			continue
		}
		s.pieces = s.pieces[i+1:]
		return
	}
}
