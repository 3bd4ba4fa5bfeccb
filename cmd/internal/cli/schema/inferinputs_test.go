package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
)

// A countdown is a context that ends after its error was asked for so often.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptKeepsWhatWasRead: what an interrupt leaves is evidence of the
// messages until then.
func TestInterruptKeepsWhatWasRead(t *testing.T) {
	const files = 200
	dir := t.TempDir()
	var names []string
	for i := range files {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, []byte{0x0a, 1, 'x', 0x10, byte(i & 0x7f)}, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	a := &app.App{Ctx: context.Background(), Input: strings.NewReader(""), Signals: new(app.SignalHandler), Out: term.New(io.Discard, "never"), Err: term.New(io.Discard, "never")}
	g := newInferInputs(a, "Root", true)
	ctx := &countdown{Context: t.Context()}
	ctx.left.Store(60)
	if err := g.gather(ctx, names); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m := g.inference.Evidence.Root("Root")
	if m == nil || m.Samples < 10 || m.Samples >= files || m.Samples != g.messages {
		t.Fatalf("%+v, %d added", m, g.messages)
	}
	if err := orInterrupted(ctx, context.Canceled); err != nil {
		t.Errorf("%v: then nothing would be written", err)
	}
}
