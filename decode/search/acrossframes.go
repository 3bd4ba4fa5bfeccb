package search

import (
	"unicode/utf8"

	"unwire/captures"
)

// A tailKey identifies a field by direction and path.
type tailKey struct {
	// dir is the direction of the frames.
	dir captures.Direction

	// path is a hash of the field's path (its field numbers or member names from the frame on).
	path uint64
}

// A tail is the end of a text field that is streamed over several frames, so that a match that spans frames can be
// found.
type tail struct {
	// text has the last tailLen bytes of the field's text, or all if there are fewer.
	text []byte

	// starts has, for each frame from which text comes, where its text begins, in order.
	starts []segment

	// round is the number of the last frame that added to text.
	round int

	// many means that the field occurred more than once in that frame.
	many bool
}

// A segment records that the text from off on comes from frame number frame.
type segment struct {
	// off is the offset, in the joined text of several frames, at which the part from this frame begins.
	off int

	// frame is the number of the frame.
	frame int
}

// searchText searches the value data for Query.Text. kind is the value's kind for the match, or "" if it must be
// detected. If joined is true, the value may continue the text of the same field in earlier frames.
func (s *searcher) searchText(data []byte, kind string, joined bool) {
	if !s.pathMatches() {
		return
	}
	if kind == "" {
		kind = "bytes"
		if utf8.Valid(data) {
			kind = "string"
		}
	}
	s.q.Text.findAll(data, func(lo, hi int) bool {
		s.reportExcerpt(kind, data, lo, hi, kind == "bytes" && !isPlain(data))
		return !s.over
	})
	if joined && kind != "bytes" && !s.over && !s.alone {
		s.matchAcrossFrames(data, kind)
	}
}

// matchAcrossFrames finds matches that begin in an earlier frame and end in this one.
func (s *searcher) matchAcrossFrames(data []byte, kind string) {
	key := tailKey{s.frame.Dir, s.pathHash()}
	t := s.tails[key]
	if t == nil {
		if len(s.tails) >= maxTails {
			return
		}
		if s.tails == nil {
			s.tails = make(map[tailKey]*tail)
		}
		t = &tail{round: -1}
		s.tails[key] = t
	}
	switch {
	case t.round == s.round:
		// The values of a repeated field do not continue each other.
		t.text, t.starts, t.many = t.text[:0], t.starts[:0], true
		return
	case t.many:
		t.many = false
	case len(t.text) > 0:
		s.searchTail(t, data, kind)
	}
	t.round = s.round
	t.addFrame(data, s.frame.Seq)
}

// searchTail searches for matches that begin in t's text and end in data, the text of the current frame.
func (s *searcher) searchTail(t *tail, data []byte, kind string) {
	before, reach := t.text, tailLen
	if s.q.Text.literal != nil {
		// A match of a literal cannot extend further than the literal's length.
		reach = min(max(len(s.q.Text.literal)-1, 0), tailLen)
		before = before[max(len(before)-reach, 0):]
	}
	skipped := len(t.text) - len(before)
	edge := len(before)
	s.both = append(append(s.both[:0], before...), data[:min(len(data), reach)]...)
	both := s.both
	s.q.Text.findAll(both, func(lo, hi int) bool {
		// A match on one side only is found elsewhere.
		if lo >= edge || hi <= edge {
			return lo < edge
		}
		m := around(both, lo, hi, false)
		m.Kind = kind

		// List the frames from the one in which the match begins.
		var frames []int
		for i, seg := range t.starts {
			if i+1 == len(t.starts) || t.starts[i+1].off > lo+skipped {
				frames = append(frames, seg.frame)
			}
		}
		s.emitMatch(m, append(frames, s.frame.Seq))
		return false
	})
}

// addFrame appends a frame's text and drops text that is too old for a match. frame is the number of the frame.
func (t *tail) addFrame(data []byte, frame int) {
	if len(data) >= tailLen {
		t.text, t.starts = append(t.text[:0], data[len(data)-tailLen:]...), append(t.starts[:0], segment{0, frame})
		return
	}
	t.starts = append(t.starts, segment{len(t.text), frame})
	t.text = append(t.text, data...)
	if len(t.text) < 2*tailLen {
		return
	}

	// Dropping only every tailLen bytes keeps the cost of moving low.
	drop := len(t.text) - tailLen
	t.text = append(t.text[:0], t.text[drop:]...)
	kept := t.starts[:0]
	for i, seg := range t.starts {
		if i+1 < len(t.starts) && t.starts[i+1].off <= drop {
			continue
		}
		kept = append(kept, segment{max(seg.off-drop, 0), seg.frame})
	}
	t.starts = kept
}

// pathHash returns an FNV-1a hash of the current path without indexes. Source:
// http://www.isthe.com/chongo/tech/comp/fnv/
func (s *searcher) pathHash() uint64 {
	h := uint64(14695981039346656037)
	for i := range s.steps {
		st := &s.steps[i]
		h = (h ^ st.number) * 1099511628211
		for k := range len(st.name) {
			h = (h ^ uint64(st.name[k])) * 1099511628211
		}
		h = (h ^ uint64(len(st.enc))) * 1099511628211
	}
	return h
}
