package live

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"unwire/captures"
	"unwire/decode/wire"
	"unwire/replay/live/values"
)

// A frame of the client may repeat a word of the server that no binding replaces, such as a made-up name or
// the key of a map. If the live server sends another word in the corresponding message, the captured word
// would be stale.

// repeated returns a value of a frame that the client repeats from a captured message of the server, but
// that the live server has not sent; nil if there is none. data is the frame's message after the
// identifiers were replaced.
func (c *Schedule) repeated(w *waiter, data []byte) *StaleValue {
	l := c.links
	i := slices.IndexFunc(l.up, func(h parsedMessage) bool { return h.frame.Seq == w.frame.Seq })
	if i < 0 || l.up[i].frame.Err != nil {
		return nil
	}
	f := *l.up[i].frame
	if f.Data = data; f.Tree != nil {
		f.Tree = wire.Parse(data, wire.Options{})
	}
	now, down := values.Terms(values.Leaves(&f, l.types[captures.Up])), c.dialogue.messages()
	for _, s := range append(slices.Clip(w.bindings), w.cause) {
		if s == nil || s.byHand || s.result() == nil || !l.down[s.t.down].shape.IsFrame() {
			continue
		}
		d := &l.down[s.t.down]
		for _, term := range slices.Sorted(maps.Keys(d.termsOf())) {
			path, sent := now[term]
			if !sent || l.up[i].termsOf()[term] == "" || l.isOwnTerm(term, s.t.down) || hasTerm(down, term) || l.isOwn(term, path, d.termsOf()[term]) {
				continue
			}
			reason := fmt.Sprintf("the live server has sent %s instead, without %q", l.roles.received(s.result().frame.Seq), cut(term, longestCarried))
			return &StaleValue{w.frame.Seq, path, l.from(d), d.termsOf()[term], reason}
		}
	}
	return nil
}

// isOwnTerm reports whether the client sent a term before it received server message j.
func (l *Links) isOwnTerm(term string, j int) bool {
	for i := range l.up {
		if l.before[i] <= j && l.up[i].termsOf()[term] != "" {
			return true
		}
	}
	return false
}

// hasTerm reports whether one of the messages has a term.
func hasTerm(messages []*parsedMessage, term string) bool {
	return slices.ContainsFunc(messages, func(h *parsedMessage) bool { return h.termsOf()[term] != "" })
}

// isLastWords reports whether the live message h is equal to its counterpart in the capture, the message of
// the same number among those of its shape, after which the client sent nothing. earlier are the live messages
// before h.
func (l *Links) isLastWords(h *parsedMessage, earlier []*parsedMessage) bool {
	if len(l.before) == 0 {
		return false
	}
	nth := 0
	for _, other := range earlier {
		if other.shape.Matches(h.shape) {
			nth++
		}
	}
	for j := range l.down {
		if !l.down[j].shape.Matches(h.shape) {
			continue
		}
		if nth == 0 {
			return j >= l.before[len(l.before)-1] && bytes.Equal(l.down[j].frame.Data, h.frame.Data)
		}
		nth--
	}
	return false
}
