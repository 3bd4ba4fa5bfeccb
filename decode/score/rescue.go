package score

import (
	"slices"
	"strings"

	"unwire/captures"
)

const surelyAsked = 0.9 // score of the text that the user sent

// rescue finds the answer of a word or a number, which by itself looks like
// metadata: the only value that is left, where the user asked something and
// nothing else answers it.
func rescue(streams []*stream, w *Weights) {
	var left []*stream
	var said *stream
	asked, settled := false, false
	for _, s := range streams {
		switch {
		case s.dir == captures.Up:
			asked = asked || s.role == user && s.score >= surelyAsked
		case s.role == assistant && said == nil && s.musing >= 0.5:
			said = s // it may be the thinking that led to the answer
		case s.role == assistant, s.role == thinking && said != nil:
			settled = true
		case s.role == metadata && s.mayAnswer():
			left = append(left, s)
		}
	}
	if said != nil {
		end := said.pieces[len(said.pieces)-1].frame
		left = slices.DeleteFunc(left, func(s *stream) bool { return s.pieces[0].frame <= end })
	}
	if !asked || settled || len(left) != 1 {
		return
	}
	left[0].features[onlyChoice] = 1
	left[0].judge(w)
	if said != nil {
		said.raise(beforeText, 1)
		said.raise(muses, said.musing)
		said.judge(w)
	}
}

// mayAnswer reports whether a short value may be all of an answer.
func (s *stream) mayAnswer() bool {
	f := &s.features
	switch {
	case s.kind == same || s.kind == separate || s.telling || s.stored:
		return false
	case f[failed]+f[status]+f[asks]+f[trailing]+f[inCall]+f[afterCall] >= 0.5, f[echo] >= 0.9 && len(s.seqs) == 1:
		return false
	case f[saysRole+metadata] >= 1 || f[saysRole+idRole] >= 1:
		return false
	}
	switch s.class {
	case plain:
		return f[wording] > 0 && strings.Count(s.text, " ") < 2
	case number:
		return len(s.text) <= 8
	case word:
		switch strings.ToLower(s.text) {
		case "yes", "no", "true", "false", "ok", "none":
			return true
		}
	}
	return false
}

// sayAgain finds short values that the server sends twice, at two places: an
// answer and its repetition in the end.
func sayAgain(streams []*stream) {
	type place struct {
		s     *stream
		frame int
	}
	first := make(map[string]place)
	for _, s := range streams {
		if s.dir != captures.Down || len(s.text) > leastRepeat || s.class != plain && s.class != number && s.class != word || s.kind == same || s.kind == separate || s.telling {
			continue
		}
		if was, ok := first[s.text]; ok && was.s.path != s.path && was.frame != s.pieces[0].frame {
			earlier := was.s
			if s.pieces[0].frame < was.frame {
				earlier = s
			}
			earlier.features[twice] = 1
			continue
		}
		first[s.text] = place{s, s.pieces[0].frame}
	}
}
