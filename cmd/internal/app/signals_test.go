package app

import (
	"context"
	"errors"
	"io"
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
