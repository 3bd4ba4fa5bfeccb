package replaytext

import (
	"strings"
	"testing"

	"unwire/cmd/internal/term"
	"unwire/replay"
)

// A countingWriter counts the calls of Write.
type countingWriter struct {
	strings.Builder
	writes int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.writes++
	return w.Builder.Write(b)
}

// TestPlanWritesFramesTogether prints a plan of many frames with few calls of Write, without dividing a line.
func TestPlanWritesFramesTogether(t *testing.T) {
	const frames = 10_000
	out := &countingWriter{}
	written := &term.Output{Writer: out}
	written.Notice = func(b []byte) {
		if len(b) > 0 && b[len(b)-1] != '\n' {
			t.Errorf("a line is divided: %q", b[max(0, len(b)-40):])
		}
	}
	Plan(written, &replay.Description{Method: "POST", URL: "http://a/b", Frames: make([]replay.PlanFrame, frames)}, false)
	if n := strings.Count(out.String(), "client frame "); n != frames || out.writes > 100 {
		t.Errorf("%d frames in %d writes, want %d in at most 100", n, out.writes, frames)
	}
}
