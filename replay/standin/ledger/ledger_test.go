package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"unwire/replay/standin/ledger"
)

func TestSecondStreamIsRefusedWhileTheFirstIsAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l ledger.Ledger
		first := l.Open(t.Context(), "c", true)
		if l.Open(t.Context(), "c", true) != nil {
			t.Error("a second stream was opened")
		}
		other := l.Open(t.Context(), "d", true)
		second := l.Open(t.Context(), "c", false)
		if other == nil || second == nil {
			t.Fatal("a stream was refused that may be opened")
		}
		first.Close(false)
		other.Close(true)
		second.Close(false)
		third := l.Open(t.Context(), "c", true)
		if third == nil {
			t.Fatal("a stream was refused after the first one ended")
		}
		got := l.Stats()
		if want := (ledger.Streams{Opened: 4, Open: 1, MostOpen: 3, Refused: 1}); got.Streams != want {
			t.Errorf("streams %+v, want %+v", got.Streams, want)
		}
		if want := (ledger.Streams{Opened: 3, Open: 1, MostOpen: 2, Refused: 1}); got.Conversations["c"] != want {
			t.Errorf("conversation %+v, want %+v", got.Conversations["c"], want)
		}
		if third.Poisoned() || !l.Open(t.Context(), "d", true).Poisoned() {
			t.Error("the wrong conversation is poisoned")
		}
	})
}

// A client may cancel a stream and open the next one at once.
func TestCancelledStreamIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l ledger.Ledger
		ctx, cancel := context.WithCancel(t.Context())
		first := l.Open(ctx, "c", true)
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
			time.Sleep(time.Second)
			first.Close(false)
		}()
		if l.Open(t.Context(), "c", true) == nil {
			t.Error("the next stream was refused")
		}
	})
}

func TestStreamsWithoutConversationNeverMeet(t *testing.T) {
	t.Parallel()
	var l ledger.Ledger
	for range 3 {
		s := l.Open(t.Context(), "", true)
		if s == nil || s.Poisoned() || s.Turns() != 0 {
			t.Fatalf("stream %+v", s)
		}
		defer s.Close(true)
	}
	if n := l.Stats(); n.Streams.Opened != 3 || len(n.Conversations) != 0 {
		t.Errorf("stats %+v", n)
	}
}

func TestManyConversationsAreBounded(t *testing.T) {
	t.Parallel()
	var l ledger.Ledger
	for i := range 10_050 {
		s := l.Open(t.Context(), fmt.Sprint(i), true)
		s.SetTurns(i)
		s.Close(false)
	}
	if n := l.Stats(); len(n.Conversations) != 10_000 || n.Streams.Opened != 10_050 || n.Streams.Open != 0 {
		t.Errorf("%d conversations, %+v", len(n.Conversations), n.Streams)
	}
}
