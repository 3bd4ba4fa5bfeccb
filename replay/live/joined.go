package live

import (
	"fmt"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/replay/live/values"
)

// A run collects consecutive server messages of one shape. A server may stream one text in pieces, such as the JSON of a
// tool call, so that no message has all of an identifier. The run's end is a message of its own, with the texts joined.
type run struct {
	// pieces are the messages, without heartbeats.
	pieces []parsedMessage
	// offered is the number of pieces that were joined while the server was silent.
	offered int
}

// add adds the next message. If it does not belong to the run, the messages before it are joined, and returned as by
// end.
func (r *run) add(h *parsedMessage) (joined *parsedMessage) {
	if h.heartbeat || h.shape.IsHeaders() {
		return nil
	}
	if len(r.pieces) > 0 && !h.shape.Matches(r.pieces[0].shape) {
		joined = r.end(false)
	}
	r.pieces = append(r.pieces, *h)
	return joined
}

// offer returns a message with the texts so far, because the server is silent; nil if it was returned before. The run may
// continue nevertheless: a slow server pauses inside a text.
func (r *run) offer() *parsedMessage {
	if r.offered == len(r.pieces) {
		return nil
	}
	r.offered = len(r.pieces)
	return joinPieces(r.pieces, true)
}

// end ends the run, and returns a message with the joined texts; nil if the run has only one message, or no texts
// that differ. open means that the run ends because the client sends something, and not by another message.
func (r *run) end(open bool) *parsedMessage {
	pieces, offered := r.pieces, r.offered
	r.pieces, r.offered = nil, 0
	if open && offered == len(pieces) {
		return nil
	}
	return joinPieces(pieces, open)
}

// joinPieces returns a message with the joined texts of pieces; see run.end.
func joinPieces(pieces []parsedMessage, open bool) *parsedMessage {
	if len(pieces) < 2 {
		return nil
	}
	var paths []string
	texts := map[string][]string{}
	for i := range pieces {
		leaves := pieces[i].leaves
		for k := 0; k < len(leaves); k++ {
			l := &leaves[k]
			if l.Data == nil || l.IsMessage() || !values.IsPrintable(l.Data) {
				continue
			}
			if texts[l.Path] == nil {
				paths = append(paths, l.Path)
			}
			texts[l.Path] = append(texts[l.Path], string(l.Data))
			k += l.Inner
		}
	}

	// A name that all messages repeat is no piece of a text.
	last := &pieces[len(pieces)-1]
	out := &parsedMessage{frame: &decode.Frame{Dir: last.frame.Dir, Seq: last.frame.Seq}, firstSeq: pieces[0].frame.Seq}
	paths = slices.DeleteFunc(paths, func(path string) bool { return len(slices.Compact(slices.Clone(texts[path]))) < 2 })
	for _, path := range paths {
		l := values.Leaf{Path: path, Last: path[strings.LastIndexByte(path, '.')+1:], Depth: 1 + strings.Count(path, ".")}
		text := strings.Join(texts[path], "")
		l.SetText([]byte(text[:min(len(text), values.MaxTraced)]))
		out.leaves = append(out.leaves, l)
	}
	if len(paths) == 0 {
		return nil
	}
	out.shape = values.JoinedShape(paths, open)
	return out
}

// addJoined adds a message with joined texts to the captured ones. Only the identifiers in it count: a client that sends
// a whole answer back, as the history of a conversation, does not depend on its words.
func (l *Links) addJoined(h *parsedMessage) {
	if h == nil {
		return
	}
	for k := range h.leaves {
		v := &h.leaves[k]
		v.Budget = &l.budget
		if _, ok := l.first[v.Value]; !ok && len(v.Data) <= longestCarried && isIDLike(v.Value) {
			l.first[v.Value] = len(l.down)
		}
	}
	l.down = append(l.down, *h)
	l.indexTokens(len(l.down) - 1)
}

// nameOfRun returns the name of a message with joined texts for the user, such as "down/4-7".
func (l *Links) nameOfRun(h *parsedMessage) string {
	return fmt.Sprintf("%s/%d-%d", l.roles.in, h.firstSeq, h.frame.Seq)
}
