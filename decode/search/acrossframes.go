package search

import (
	"unicode/utf8"

	"unwire/captures"
)

// A tailKey names a field of a direction.
type tailKey struct {
	dir  captures.Direction
	path uint64
}

// A tail is the end of a field's text in the frames so far.
type tail struct {
	text   []byte
	starts []segment // of the frames that it is of, in order
	round  int       // in which it was last added to
	many   bool      // more than once in that one
}

type segment struct{ off, frame int }

// text finds Text in a value. A value that may go on in the next frame's field
// is joined to what came before.
func (s *searcher) text(data []byte, kind string, joined bool) {
	if !s.wanted() {
		return
	}
	if kind == "" {
		kind = "bytes"
		if utf8.Valid(data) {
			kind = "string"
		}
	}
	s.q.Text.findAll(data, func(lo, hi int) bool {
		s.hit(kind, data, lo, hi, kind == "bytes" && !isPlain(data))
		return !s.over
	})
	if joined && kind != "bytes" && !s.over {
		s.join(data, kind)
	}
}

// join looks for what begins in an earlier frame and ends in this one.
func (s *searcher) join(data []byte, kind string) {
	key := tailKey{s.frame.Dir, s.pathHash()}
	t := s.tails[key]
	if t == nil {
		if len(s.tails) >= maxTails {
			return
		}
		t = &tail{round: -1}
		s.tails[key] = t
	}
	switch {
	case t.round == s.round:
		// A repeated field: its values do not continue each other.
		t.text, t.starts, t.many = t.text[:0], t.starts[:0], true
		return
	case t.many:
		t.many = false
	case len(t.text) > 0:
		s.across(t, data, kind)
	}
	t.round = s.round
	t.addFrame(data, s.frame.Seq)
}

func (s *searcher) across(t *tail, data []byte, kind string) {
	before, reach := t.text, tailLen
	if s.q.Text.literal != nil {
		// It cannot reach further than it is long.
		reach = min(max(len(s.q.Text.literal)-1, 0), tailLen)
		before = before[max(len(before)-reach, 0):]
	}
	skipped := len(t.text) - len(before)
	edge := len(before)
	s.both = append(append(s.both[:0], before...), data[:min(len(data), reach)]...)
	both := s.both
	s.q.Text.findAll(both, func(lo, hi int) bool {
		if lo >= edge || hi <= edge {
			return lo < edge
		}
		m := around(both, lo, hi, false)
		m.Kind = kind
		var frames []int
		for i, seg := range t.starts {
			if i+1 == len(t.starts) || t.starts[i+1].off > lo+skipped {
				frames = append(frames, seg.frame)
			}
		}
		s.send(m, append(frames, s.frame.Seq))
		return false
	})
}

// addFrame appends a frame's text and forgets what is too far back.
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

// pathHash tells paths apart, without indexes.
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
