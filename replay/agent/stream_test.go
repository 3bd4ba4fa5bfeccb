package agent

import (
	"testing"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
)

// TestTurnEndsWithTheAnswer ends a stream between an answer and its stream_close, as a
// server does that has all it needs for the end of the turn. The answer was sent.
func TestTurnEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	definitions, err := message.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(definitions, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for answers, want := range []bool{false, true} {
		s := newStream(nil, "", set)
		s.outgoing = make(chan outgoing) // nothing is sent before it is taken
		go func() {
			for range answers {
				<-s.outgoing
			}
			s.halt()
		}()
		if got := s.finish(&tools.Exec{ID: 1}, []message.Message{definitions.Client()}); got != want {
			t.Errorf("the stream ended after %d messages: finish = %v, want %v", answers, got, want)
		}
	}
}
