package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/callshape"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/part"
)

// setAsideCalls gives the role of a call to those texts that are inside of calls found by the structure of their
// messages (pieces). If one of them was taken for an answer, the roles of the other texts are inferred again
// without them.
func (c *collection) setAsideCalls(ex *decode.Exchange, streams []*stream, pieces []keyed.Piece, o Options) []*stream {
	inside, names := make(map[place]bool), make(map[string]bool)
	for i := range pieces {
		// Results have the paths of other texts, too, if all kinds of messages are of one type.
		if p := &pieces[i]; p.Channel == keyed.Call {
			inside[place{p.Dir, p.Path}], names[p.Name] = true, true
		}
	}
	if len(inside) == 0 {
		return streams
	}
	var texts, inCalls []*stream
	mistaken := false
	// A message that contains a text may look like a google.protobuf.Struct. So do not discard prose in such a message
	// unless another stream has the answer, or the call has more than a word and a text.
	answered := slices.ContainsFunc(pieces, callshape.IsCertain) || slices.ContainsFunc(streams, func(s *stream) bool {
		return s.dir == captures.Down && s.role == assistant && s.class == plain && !isInside(s, inside)
	})
	for _, s := range streams {
		isName := !slices.ContainsFunc(s.pieces, func(p textPiece) bool { return !names[p.text] })
		isProse := s.class == plain && (s.role == assistant || s.role == user || s.role == thinking)
		if !isName && !isInside(s, inside) || isProse && !answered {
			texts = append(texts, s)
			continue
		}
		mistaken = mistaken || s.role == assistant || s.role == thinking
		s.setRole(toolCall, "shape of a call")
		inCalls = append(inCalls, s)
	}
	if mistaken {
		texts = c.judgeStreams(ex, texts, o)
	}
	return append(texts, inCalls...)
}

// A place is a path in one direction.
type place struct {
	// dir is the direction of the frames.
	dir captures.Direction

	// path is the path of the text: field numbers or names of JSON members joined by dots, without indexes.
	path string
}

// isInside reports whether the path of a stream is one of places, or below one.
func isInside(s *stream, places map[place]bool) bool {
	for path := s.path; path != ""; path = naming.Enclosing(path) {
		if places[place{s.dir, path}] {
			return true
		}
	}
	return false
}

// knownShapes returns those pieces of calls whose paths have collected texts (streams). JSON in a string that was
// unpacked as an event is not a call.
func knownShapes(streams []*stream, pieces []keyed.Piece) []keyed.Piece {
	if len(pieces) == 0 {
		return nil
	}
	known, exact := make(map[place]bool), make(map[place]bool)
	for _, s := range streams {
		exact[place{s.dir, s.path}] = true
		for path := s.path; path != ""; path = naming.Enclosing(path) {
			known[place{s.dir, path}] = true
		}
	}
	return slices.DeleteFunc(pieces, func(p keyed.Piece) bool {
		at := place{p.Dir, p.Path}
		return !exact[at] && !(p.Whole && known[at])
	})
}

// withShaped adds calls that were found by the structure of their messages (pieces) to tools, the calls that were
// found by the roles of texts. A call of the latter kind is dropped if its text belongs to one of the former.
func withShaped(tools []Tool, pieces []keyed.Piece) []Tool {
	shaped := toolsOf(part.Join(&keyed.Pieces{List: pieces}).Calls)
	if len(shaped) == 0 {
		return tools
	}
	tools = slices.DeleteFunc(tools, func(t Tool) bool {
		return slices.ContainsFunc(shaped, func(s Tool) bool {
			outer := naming.Enclosing(s.Path)
			return strings.HasPrefix(t.Path, outer+".") || s.ResultPath != "" && (t.ResultPath == s.ResultPath || strings.HasPrefix(t.ResultPath, s.ResultPath+".")) ||
				t.Arguments == t.Name || t.ID != "" && t.ID == s.ID || len(t.Frames) == 0 && sameResult(t.Result, s.Result)
		})
	})
	tools = append(tools, shaped...)
	slices.SortStableFunc(tools, func(a, b Tool) int { return cmp.Compare(a.frame, b.frame) })
	return tools
}

// toolsOf converts joined calls to Tools.
func toolsOf(calls []part.Call) []Tool {
	out := make([]Tool, 0, len(calls))
	for i := range calls {
		c := &calls[i]
		t := Tool{ID: c.ID, Name: c.Name, Path: c.Path, Arguments: c.Arguments, Frames: c.Frames, Earlier: c.Dir == captures.Up, frame: c.First, event: c.Event, dir: c.Dir}
		if r := c.Result; r != nil {
			t.Result, t.ResultDir, t.ResultPath, t.ResultFrames = r.Text, r.Dir.String(), r.Path, r.Frames
			if t.Paired = "order"; r.ByID {
				t.Paired = "id"
			}
		}
		out = append(out, t)
	}
	return out
}

// markFlagged finds thinking that is marked by a flag: a number that is 1 next to each piece of a text, and that is
// missing next to the text that follows on the same path. If no other text follows, but a tool was called, the text
// is thinking, too.
func (c *collection) markFlagged(streams []*stream) {
	var down []*stream
	for _, s := range streams {
		if s.dir == captures.Down && s.role == thinking {
			return
		}
		if s.dir == captures.Down && s.text != "" {
			down = append(down, s)
		}
	}
	for _, s := range down {
		if s.role != assistant && s.role != metadata && s.role != user || s.class != plain && s.class != word {
			continue
		}
		if flag, ok := c.flagOf(s); ok && c.numbers[flag].most == 1 {
			c.markThought(s, down, flag)
		}
	}
}

// markThought gives s the role of thinking if the number flag next to it distinguishes it from the answer, or if
// there is no answer. down are the server's texts.
func (c *collection) markThought(s *stream, down []*stream, flag int32) {
	var answer *stream
	others, answers := 0, 0
	for _, o := range down {
		if o == s {
			continue
		}
		if o.role == assistant || o.role == user && o.class == plain {
			others++
		}
		if o.role == assistant {
			answers++
		}
		if o.path == s.path && o.pieces[0].frame >= s.pieces[len(s.pieces)-1].frame && !c.hasFlag(o, flag) {
			answer = o
		}
	}
	switch {
	case answer != nil && (others == 0 || others == 1 && (answer.role == assistant || answer.role == user)):
		s.setRole(thinking, "flag next to the text")
		answer.setRole(assistant, "flag next to the text before")
	case answers == 0 && c.shaped:
		s.setRole(thinking, "flag next to the text")
	}
}

// setRole sets a role that is certain, with its reason why.
func (s *stream) setRole(role int, why string) {
	s.role, s.score, s.reasons = role, 1, append([]Reason{{Feature: why, Weight: 10}}, s.reasons...)
}

// flagOf returns the index in c.numbers of a number that is 1 in the message of each piece of s. ok is false if
// there is none.
func (c *collection) flagOf(s *stream) (at int32, ok bool) {
	for _, n := range c.groups[s.pieces[0].group].scalars {
		if n.value == 1 && c.hasFlag(s, n.at) {
			return n.at, true
		}
	}
	return -1, false
}

// hasFlag reports whether number at (an index in c.numbers) is 1 in the message of each piece of s.
func (c *collection) hasFlag(s *stream, at int32) bool {
	for _, p := range s.pieces {
		if !slices.Contains(c.groups[p.group].scalars, smallNumber{at, 1}) {
			return false
		}
	}
	return true
}
