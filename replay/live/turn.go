package live

import (
	"fmt"
	"slices"

	"unwire/captures"
)

// A Turn says when a frame of the client's may be sent, and which identifiers of
// the server's it has to carry.
type Turn struct {
	// After is how many server frames preceded it, heartbeats left out.
	After int `json:"after"`

	// Answers is the captured frame that it waits for: "down/4"; "" for none.
	Answers string `json:"answers,omitempty"`

	Live []Binding `json:"live,omitempty"`

	// Beat says that it is sent by the clock.
	Beat bool `json:"heartbeat,omitempty"`

	cause *target
}

// Turns returns the turn of each of the client's messages, in their order.
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
			t.Answers = fmt.Sprintf("%s/%d", captures.Down, t.cause.seq)
		}
		t.Live, t.Beat = l.bindings(i), l.up[i].heartbeat
		if l.up[i].frame.Err != nil {
			t.Live = nil
		}
	}
	bound := make([][]Binding, len(turns))
	for i := range turns {
		turns[i].Live = append(turns[i].Live, l.zeros(i)...)
		bound[i] = turns[i].Live // shared: digests are noted in them
	}
	l.findQuestions(bound)
	return turns
}

// Messages is how many messages the captured answer has, heartbeats left out.
func (l *Links) Messages() (n int) {
	for i := range l.down {
		if !l.down[i].heartbeat && !l.down[i].shape.isHeaders() {
			n++
		}
	}
	return n
}
