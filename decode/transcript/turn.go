package transcript

import (
	"slices"
	"strings"

	"unwire/captures"
)

// A Turn is one contribution to the conversation: a text of one speaker, or a call of a tool.
type Turn struct {
	// Role is the role of the text or call, and so its author.
	Role Role `json:"role"`

	// Dir is "up" or "down".
	Dir string `json:"dir"`

	// Path is the field path of the text.
	Path string `json:"path,omitempty"`

	// Frames are the numbers, in the direction Dir, of the frames that contain the turn.
	Frames []int `json:"frames"`

	// Text is the text of the turn; empty for a call of a tool.
	Text string `json:"text,omitempty"`

	// Tool is the number of the call in Transcript.Tools, from 1; 0 if the turn is not a call.
	Tool int `json:"tool,omitempty"`

	// Earlier means that the turn repeats a turn of the earlier exchange that this exchange continues.
	Earlier bool `json:"earlier,omitempty"`

	// frame is the index of the first frame in the exchange.
	frame int

	// event is the index of the event in the exchange, and order the number of the message in it, for turns that
	// names in the messages mark.
	event, order int
}

// An addedText is the text that one piece adds to the text of its stream.
type addedText struct {
	// s is the stream (the texts of one path) to which the piece belongs.
	s *stream

	// piece is the value as sent. It may repeat text that was sent before.
	piece textPiece

	// text is the part of the piece that is new, without what earlier pieces of the stream sent.
	text string
}

// sureUser is the minimum score of a further text of the user for it to become a turn.
const sureUser = 0.8

// turns returns the turns of the conversation in the order in which they were sent.
func turns(streams []*stream, tools []Tool) []Turn {
	// Collect the texts of the user and of the assistant.
	var said []addedText
	var asked []string
	for _, s := range streams {
		switch s.role {
		case assistant:
			if s.dir == captures.Up {
				// Earlier answers that the client sends as history.
				break
			}
			if s != streams[0] && (s.interleaved && s.answerRank() == 0 || s.path != streams[0].path || s.dir != streams[0].dir || s.kind < delta && s.features[headline] > 0) {
				// Another candidate for the same answer.
				continue
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

	// Merge texts of one stream that follow each other into a turn.
	slices.SortStableFunc(said, func(a, b addedText) int { return comparePieces(a.piece, b.piece) })
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
		// Insert the calls that were made before this text.
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

// additions returns the text that each piece adds to the text of s, in order.
func (s *stream) additions() []addedText {
	out := make([]addedText, 0, len(s.pieces))
	add := func(p textPiece, text string) { out = append(out, addedText{s, p, text}) }
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
			// The last piece repeats the whole text.
			pieces = pieces[:n-1]
		}
		for _, p := range pieces {
			add(p, p.text)
		}
	}

	return out
}
