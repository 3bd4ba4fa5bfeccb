package progress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"unwire/cmd/internal/term"
)

// TestMeter: the line appears after a second, is removed before other output and at the end,
// and changes four times a second.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		errs := &term.Output{Writer: &screen, TTY: true, Width: 80}
		out := &term.Output{Writer: &screen, TTY: true, Width: 80}
		_, m := Start(t.Context(), Options{Out: out, Err: errs, What: "checking", Files: 2, Total: func(context.Context) int64 { return 10_000_000 }})
		m.Add("a", 1_000_000)
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if screen.Len() > 0 {
			t.Fatalf("drawn too early: %q", screen.String())
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := screen.String(); got != clearLine+"unwire: checking · file 1 of 2 · 1.0 MB of 10.0 MB (10 %) · 1.0 MB/s · 9s left" {
			t.Fatalf("%q", got)
		}

		screen.Reset()
		fmt.Fprintln(out, "a result")
		fmt.Fprint(errs, "a question? ")
		if got := screen.String(); got != clearLine+"a result\na question? " {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := screen.String(); !strings.HasSuffix(got, "question? ") {
			t.Errorf("drawn over the text of others: %q", got)
		}
		fmt.Fprintln(errs)
		screen.Reset()
		m.Add("b", 8_000_000)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(screen.String(), clearLine); n < 3 || n > 5 {
			t.Errorf("drawn %d times in a second", n)
		}
		m.Stop()
		if !strings.HasSuffix(screen.String(), "left"+clearLine) || errs.Writer != &screen || out.Writer != &screen {
			t.Errorf("not removed: %q", screen.String())
		}
	})
}

// An interrupt removes the line at once, and a short terminal gets a short one.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		errs := &term.Output{Writer: &screen, TTY: true, Width: 20}
		ctx, cancel := context.WithCancel(t.Context())
		_, m := Start(ctx, Options{Out: &term.Output{}, Err: errs, What: "importing"})
		if _, err := io.Copy(io.Discard, m.Reader("x", strings.NewReader("12345"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got := screen.String(); got != clearLine+"unwire: importing ·"+clearLine {
			t.Errorf("%q", got)
		}
		m.Stop()
	})
}

// Requests and experiments are counted, too.
func TestSteps(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"probing · 2 requests · 5 s":        {What: "probing", Unit: "request"},
		"running · experiment 3 of 9 · 5 s": {What: "running", Unit: "experiment", Steps: 9},
	} {
		m := &Meter{o: o}
		m.Step()
		m.Step()
		if got := m.text(5 * time.Second); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Where stderr is no terminal nothing is written.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	o := &term.Output{Writer: io.Discard}
	ctx, m := Start(t.Context(), Options{Out: o, Err: o})
	if m != nil || ctx != t.Context() {
		t.Error("a meter without a terminal")
	}
	m.Add("x", 1)
	if r := strings.NewReader(""); m.Reader("x", r) != io.Reader(r) {
		t.Error("a reader is wrapped")
	}
	m.Stop()
}
