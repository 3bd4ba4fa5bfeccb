package hook

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// maxLine is the length in bytes up to which a line of the program's standard error is kept.
const maxLine = 400

// A lastLine is a writer that keeps the last line that is not empty.
type lastLine struct {
	// to receives everything that is written.
	to io.Writer

	// mu guards the fields below.
	mu sync.Mutex
	// current is the beginning of the line that is not complete yet.
	current []byte
	// before is the beginning of the last complete line that is not empty.
	before []byte
}

// Write forwards p.
func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	for line := range bytes.SplitAfterSeq(p, []byte("\n")) {
		l.current = append(l.current, line[:min(len(line), maxLine-min(len(l.current), maxLine))]...)
		if bytes.HasSuffix(line, []byte("\n")) {
			l.endLine()
		}
	}
	l.mu.Unlock()
	return l.to.Write(p)
}

// endLine makes the current line the last complete one, unless it is empty. The caller has locked mu.
func (l *lastLine) endLine() {
	if len(bytes.TrimSpace(l.current)) > 0 {
		l.before = append(l.before[:0], l.current...)
	}
	l.current = l.current[:0]
}

// last returns the last line that is not empty; "" if there is none.
func (l *lastLine) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLine()
	return strings.TrimSpace(strings.ToValidUTF8(string(l.before), "\uFFFD"))
}
