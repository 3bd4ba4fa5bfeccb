package turn_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"unwire/replay/agent/turn"
)

func TestStatusOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind := turn.Internal; kind <= turn.ContextTooLong; kind++ {
		if got := kind.Status(); got < 400 || got > 599 {
			t.Errorf("kind %d has the status %d", kind, got)
		}
	}
	if got := turn.Kind(99).Status(); got != 500 {
		t.Errorf("an unknown kind has the status %d, want 500", got)
	}
}

func TestAsErrorKeepsTheKind(t *testing.T) {
	t.Parallel()
	limited := &turn.Error{Kind: turn.RateLimited, Message: "too many requests"}
	if got := turn.AsError(fmt.Errorf("turn 3: %w", limited)); got != limited {
		t.Errorf("AsError of a wrapped error = %#v, want the error itself", got)
	}
	if got := turn.AsError(io.ErrUnexpectedEOF); got.Kind != turn.Internal || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("AsError of another error = %#v, want an internal one that wraps it", got)
	}
}
