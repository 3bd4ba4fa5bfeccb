package live

import (
	"fmt"
	"slices"
)

// A Turn describes when a frame of the client may be sent, and which of the server's identifiers it
// contains.
type Turn struct {
	// After is the number of server frames before the client frame, not counting heartbeats.
	After int `json:"after"`

	// Answers is the captured server frame for which the client frame waits, such as "down/4"; "" for
	// none.
	Answers string `json:"answers,omitempty"`

	// Live are the identifiers in the frame that the server issued.
	Live []Binding `json:"live,omitempty"`

	// Beat means that the frame is a heartbeat, which is sent periodically.
	Beat bool `json:"heartbeat,omitempty"`

	cause *target
}

// Turns returns the turn of each of the client's messages, in order.
func (l *Links) Turns() []Turn {
	if l.turns == nil {
		l.turns = l.findTurns()
	}
	return slices.Clone(l.turns)
}

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
	bound := make([][]Binding, len(turns))
	for i := range turns {
		turns[i].Live = append(turns[i].Live, l.zeros(i)...)
		// shared, because digests are recorded in them
		bound[i] = turns[i].Live
	}
	l.findQuestions(bound)
	return turns
}

// Messages returns the number of messages in the captured answer, without heartbeats.
func (l *Links) Messages() (n int) {
	for i := range l.down {
		if !l.down[i].heartbeat && !l.down[i].shape.IsHeaders() {
			n++
		}
	}
	return n
}
