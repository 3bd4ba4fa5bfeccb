package interrupt

import (
	"context"
	"errors"
	"testing"
)

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	if v, err := Run(t.Context(), func() (int, error) { return 7, broken }); v != 7 || !errors.Is(err, broken) {
		t.Errorf("got %d, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	defer close(hold)
	if v, err := Run(ctx, func() (int, error) { cancel(); <-hold; return 7, nil }); v != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d, %v of work that does not end", v, err)
	}
	defer func() {
		if p := recover(); p != "fault" {
			t.Errorf("got panic %v", p)
		}
	}()
	_, _ = Run(t.Context(), func() (int, error) { panic("fault") })
}

func TestIndex(t *testing.T) {
	data := make([]byte, 20<<20)
	word := []byte("word")
	for _, at := range []int{0, 8<<20 - 4, 8<<20 - 3, 8<<20 - 1, 8 << 20, 16<<20 + 5, len(data) - 4} {
		copy(data[at:], word)
		if got := Index(t.Context(), data, word); got != at {
			t.Errorf("got %d, want %d", got, at)
		}
		clear(data[at : at+len(word)])
	}
	if got := Index(t.Context(), data, word); got != -1 {
		t.Errorf("got %d in nothing", got)
	}
	if got := Index(t.Context(), nil, word); got != -1 {
		t.Errorf("got %d in no bytes", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Index(ctx, word, word); got != -1 {
		t.Errorf("got %d after the end of the context", got)
	}
}
