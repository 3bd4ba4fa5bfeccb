package live

import (
	"fmt"
	"slices"
)

// A Turn describes when a client frame may be sent in a replay, and which identifiers in it the server
// issued.
type Turn struct {
	// After is the number of server frames before the client frame in the capture, not counting
	// heartbeats.
	After int `json:"after"`

	// Answers is the captured server frame that the client frame responds to, such as "down/4"; "" for
	// none.
	Answers string `json:"answers,omitempty"`

	// Live are the identifiers in the frame that the server issued. They are replaced by those of the
	// live server.
	Live []Binding `json:"live,omitempty"`

	// Beat means that the frame is a heartbeat: it is sent periodically, independently of the server.
	Beat bool `json:"heartbeat,omitempty"`

	// cause describes the server frame for which the client frame waits; nil for none.
	cause *target
}

// Turns returns the turn of each of the client's messages, in order.
func (l *Links) Turns() []Turn {
	if l.turns == nil {
		l.turns = l.findTurns()
	}
	return slices.Clone(l.turns)
}

// findTurns computes, for each of the client's messages, when a replay may send it and which identifiers in it the
// server issued.
func (l *Links) findTurns() []Turn {
	turns := make([]Turn, len(l.up))
	for i := range turns {
		t := &turns[i]
		if t.cause, t.After = l.cause(i); t.cause != nil {
			t.Answers = fmt.Sprintf("%s/%d", l.roles.in, t.cause.seq)
		}
		t.Live, t.Beat = l.bindings(i), l.up[i].heartbeat
		if l.up[i].frame.Err != nil {
			t.Live = nil
		}
	}
	l.agreeOnSpellings(turns)
	l.bindShortIDs(turns)
	bound := make([][]Binding, len(turns))
	for i := range turns {
		turns[i].Live = append(turns[i].Live, l.zeros(i)...)
		// shared, because digests are recorded in them
		bound[i] = turns[i].Live
	}
	l.findQuestions(bound)
	return turns
}

// Messages returns the number of messages in the server's captured response, without heartbeats.
func (l *Links) Messages() (n int) {
	for i := range l.down {
		if !l.down[i].heartbeat && l.down[i].shape.IsFrame() {
			n++
		}
	}
	return n
}
