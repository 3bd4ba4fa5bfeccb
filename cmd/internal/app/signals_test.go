package app

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestInterruptibleReaderReturnsAllBytes(t *testing.T) {
	text := strings.Repeat("some bytes ", 20_000)
	for name, from := range map[string]io.Reader{
		"whole":           strings.NewReader(text),
		"one byte":        iotest.OneByteReader(strings.NewReader(text)),
		"data with error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(&interruptibleReader{ctx: t.Context(), from: from})
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	failed := errors.New("read failed")
	got, err := io.ReadAll(&interruptibleReader{ctx: t.Context(), from: io.MultiReader(strings.NewReader(text), iotest.ErrReader(failed))})
	if !errors.Is(err, failed) || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestInterruptibleReaderEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe() // a read waits for ever
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(&interruptibleReader{ctx: ctx, from: r})
		read <- err
	}()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestSignalReachesEitherCommandOrChild sends signals around the start of a child: the
// command's context ends, or the child runs and gets them, and never neither.
func TestSignalReachesEitherCommandOrChild(t *testing.T) {
	for range 200 {
		in := &SignalHandler{received: make(chan os.Signal, 1)}
		go func() { in.received <- os.Interrupt }()
		code, _ := in.Run(func(ctx context.Context) int {
			childs := make(chan os.Signal, 1) // what package launch catches gets every signal, too
			ended, err := in.ChildRuns()
			if err != nil {
				<-ctx.Done()
				return 1
			}
			defer ended()
			go func() {
				for !in.Caught() {
					runtime.Gosched()
				}
				childs <- os.Interrupt
			}()
			select {
			case <-childs:
				return 2
			case <-ctx.Done():
				return 3
			}
		})
		if code != 1 && code != 2 {
			t.Fatalf("status %d: the child started, and the signal went to the command", code)
		}
	}
}
