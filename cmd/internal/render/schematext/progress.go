package schematext

import (
	"fmt"
	"path/filepath"
	"time"

	"unwire/cmd/internal/term"
	"unwire/schema/extract"
)

const (
	// progressEvery is the interval at which the progress line is redrawn.
	progressEvery = 100 * time.Millisecond

	// progressWidth is the length to which the progress line is truncated, in characters.
	progressWidth = 78
)

// ExtractProgress returns functions that draw and remove the progress line of an extraction. If out is
// not a terminal, draw is nil and done does nothing.
func ExtractProgress(out *term.Output) (draw func(extract.Progress), done func()) {
	if !out.TTY {
		return nil, func() {}
	}
	next, drawn := time.Now().Add(progressEvery), false
	draw = func(p extract.Progress) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next, drawn = now.Add(progressEvery), true
		line := "unwire: extracting · " + filepath.Base(p.File)
		if p.Size > 0 {
			line += fmt.Sprintf(" · %d %% of %d MB", 100*p.Read/p.Size, (p.Size+999_999)/1_000_000)
		}
		if p.Member != "" {
			line += " · " + p.Member
		}
		fmt.Fprintf(out, "\r\x1b[K%.*s", progressWidth, term.Clean(line))
	}
	return draw, func() {
		if drawn {
			fmt.Fprint(out, "\r\x1b[K")
			drawn = false
		}
	}
}
