package schemacmd

import (
	"fmt"
	"path/filepath"
	"time"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema/extract"
)

// extractProgressEvery is how often a line of progress is drawn.
const extractProgressEvery = 100 * time.Millisecond

// extractProgress returns what draws how far an extraction is, and what wipes it
// out again. Off a terminal nothing is drawn.
func extractProgress(a *app.App) (draw func(extract.Progress), done func()) {
	if !a.Err.TTY {
		return nil, func() {}
	}
	next, drawn := time.Now().Add(extractProgressEvery), false
	draw = func(p extract.Progress) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next, drawn = now.Add(extractProgressEvery), true
		line := filepath.Base(p.File)
		if p.Size > 0 {
			line += fmt.Sprintf(" %3d %% of %d MB", 100*p.Read/p.Size, (p.Size+999_999)/1_000_000)
		}
		if p.Member != "" {
			line += "  " + p.Member
		}
		fmt.Fprintf(a.Err, "\r\x1b[K%.*s", progressWidth, term.Clean(line))
	}
	return draw, func() {
		if drawn {
			fmt.Fprint(a.Err, "\r\x1b[K")
			drawn = false
		}
	}
}

// progressWidth is how many characters of progress are drawn, so that it stays
// on one line.
const progressWidth = 78
