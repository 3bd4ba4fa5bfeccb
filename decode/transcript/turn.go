package transcript

import (
	"slices"
	"strings"

	"unwire/captures"
)

// A Turn is a stretch of the conversation in one voice.
//
// Shape: Role is that of the candidate that says it; Tool is the number of the
// call in Transcript.Tools, from 1, where Role is tool_call, and then Text is
// empty: the call has it. Frames are sequence numbers in the direction.
type Turn struct {
	Role   Role   `json:"role"`
	Dir    string `json:"dir"`
	Path   string `json:"path,omitempty"`
	Frames []int  `json:"frames"`
	Text   string `json:"text,omitempty"`
	Tool   int    `json:"tool,omitempty"`

	frame int // of the exchange, where it begins
}

// An addition is what one piece adds to the text of its stream.
type addition struct {
	s     *stream
	piece piece
	text  string
}

const sureUser = 0.8 // of a second user text's score that is shown as said

// turns are who said what, in the order in which it was said.
func turns(streams []*stream, tools []Tool) []Turn {
	var said []addition
	var asked []string
	for _, s := range streams {
		switch s.role {
		case assistant:
			if s.dir == captures.Up {
				break // what was answered before
			}
			if s != streams[0] && (s.interleaved && s.answerRank() == 0 || s.path != streams[0].path || s.dir != streams[0].dir || s.kind < delta && s.features[headline] > 0) {
				continue // another candidate for the same thing
			}
		case thinking:
		case user:
			if len(asked) > 0 && s.score < sureUser || slices.Contains(asked, s.text) || s.stored {
				continue
			}
			asked = append(asked, s.text)
		default:
			continue
		}
		said = append(said, s.additions()...)
	}
	slices.SortStableFunc(said, func(a, b addition) int { return comparePieces(a.piece, b.piece) })
	var out []Turn
	var text strings.Builder
	var last *stream
	next := 0
	flush := func() {
		if last != nil {
			out[len(out)-1].Text = text.String()
			text.Reset()
			last = nil
		}
	}
	for _, a := range said {
		for next < len(tools) && tools[next].frame <= a.piece.frame {
			flush()
			out = append(out, tools[next].turn(next+1))
			next++
		}
		if last != a.s || a.s.kind == separate {
			flush()
			out = append(out, Turn{Role: roleOrder[a.s.role], Dir: a.s.dir.String(), Path: a.s.path, frame: a.piece.frame})
			last = a.s
		}
		text.WriteString(a.text)
		if t := &out[len(out)-1]; len(t.Frames) == 0 || t.Frames[len(t.Frames)-1] != a.piece.seq {
			t.Frames = append(t.Frames, a.piece.seq)
		}
	}
	flush()
	for ; next < len(tools); next++ {
		out = append(out, tools[next].turn(next+1))
	}
	for i := range out {
		out[i].Text = strings.ToValidUTF8(out[i].Text, "\uFFFD")
	}
	return out
}

// additions are what the pieces of s add, one behind the other.
func (s *stream) additions() []addition {
	out := make([]addition, 0, len(s.pieces))
	add := func(p piece, text string) { out = append(out, addition{s, p, text}) }
	switch s.kind {
	case single, same:
		add(s.pieces[0], s.text)
	case growing:
		before := ""
		for _, p := range s.pieces {
			if more, ok := strings.CutPrefix(p.text, before); ok {
				if more != "" {
					add(p, more)
				}
			} else {
				add(p, p.text)
			}
			before = p.text
		}
	case separate:
		for _, p := range unique(s.pieces) {
			add(p, p.text)
		}
	default:
		pieces := s.pieces
		if n := len(pieces); n > 2 && concat(pieces[:n-1], "") == pieces[n-1].text {
			pieces = pieces[:n-1] // the whole text again
		}
		for _, p := range pieces {
			add(p, p.text)
		}
	}
	return out
}
