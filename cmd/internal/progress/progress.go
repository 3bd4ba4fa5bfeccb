// Package progress shows on a terminal how far long work is: files, bytes, rate and time
// left, in one line on stderr that is drawn over. Commands that read captures or large files
// use it.
//
//	ctx, meter := progress.Start(ctx, progress.Options{Out: a.Out, Err: a.Err, What: "checking", Files: files})
//	defer meter.Stop()
//
// Where stderr is no terminal it does nothing. Otherwise the line appears after a second, and
// changes four times a second. It is removed before anything else is written, when the
// work ends, and when the context does. What is read of captures with the returned context
// is counted (package store), and what a Reader reads.
package progress

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"unwire/captures/store"
	"unwire/cmd/internal/term"
)

// The progress line appears after delay, and is redrawn at the interval every.
const (
	delay = time.Second
	every = 250 * time.Millisecond

	// clearLine moves to the beginning of the line and clears it.
	clearLine = "\r\x1b[K"
)

// Options configure a progress line.
type Options struct {
	// Out is stdout. Writing to it removes the progress line first.
	Out *term.Output

	// Err is stderr. Writing to it removes the progress line first.
	Err *term.Output

	// What describes the work with a verb, such as "checking".
	What string

	// Files is the number of files to be read; 0 if it is not known.
	Files int

	// Unit is the name of a step that Step counts, such as "request".
	Unit string

	// Steps is the total number of steps; 0 if it is not known.
	Steps int

	// Total, if set, returns how many bytes will be read; 0 if that is not known. It is called once,
	// before the line appears for the first time.
	Total func(ctx context.Context) int64
}

// A Meter counts finished work and draws the progress line. The methods of a nil Meter do nothing.
type Meter struct {
	// o are the options.
	o Options

	// columns is the width of the terminal.
	columns int

	// began is when the work began.
	began time.Time

	// cancel ends the goroutine that draws, and ended waits for it.
	cancel context.CancelFunc

	// ended waits for the goroutine that draws.
	ended sync.WaitGroup

	// out is stdout itself, without the wrapper that removes the progress line before each write.
	out io.Writer

	// err is stderr itself, without that wrapper.
	err io.Writer

	// mu guards the fields below.
	mu sync.Mutex

	// steps is the number of finished steps.
	steps int

	// files are the files of which at least one byte has been read.
	files map[string]bool

	// bytes is the number of bytes read so far.
	bytes int64

	// total is the number of bytes to be read; 0 if it is not known.
	total int64

	// drawn means that the progress line is on the screen.
	drawn bool

	// midLine means that the terminal's current line contains output other than the progress line, so
	// that the progress line must not be drawn.
	midLine bool
}

// Start starts a progress line for work that begins now. Reads of captures with the returned context are
// counted. The Meter is nil if stderr is not a terminal.
func Start(ctx context.Context, o Options) (context.Context, *Meter) {
	if !o.Err.TTY {
		return ctx, nil
	}
	m := &Meter{o: o, columns: o.Err.Columns(), began: time.Now(), files: map[string]bool{}, err: o.Err.Writer}
	o.Err.Writer = &watched{m, m.err}
	if o.Out.TTY {
		m.out = o.Out.Writer
		o.Out.Writer = &watched{m, m.out}
	}
	drawing, cancel := context.WithCancel(ctx)
	m.cancel = cancel
	m.ended.Go(func() { m.run(drawing) })
	return store.CountReads(ctx, m.Add), m
}

// Stop stops drawing, and removes the progress line from the terminal.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	m.cancel()
	m.ended.Wait()
	m.o.Err.Writer = m.err
	if m.out != nil {
		m.o.Out.Writer = m.out
	}
}

// Add counts bytes that were read from a file.
func (m *Meter) Add(file string, bytes int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[file] = true
	m.bytes += int64(bytes)
}

// Step counts one finished step, in the unit of Options.Unit.
func (m *Meter) Step() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
}

// run redraws the progress line at an interval until the context ends.
func (m *Meter) run(ctx context.Context) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.clear()
	}()

	// Short work shows nothing.
	select {
	case <-ctx.Done():
		return
	case <-time.After(delay):
	}

	// Computing the total may take a while, so it is done only once the line is needed.
	if m.o.Total != nil {
		total := m.o.Total(ctx)
		m.mu.Lock()
		m.total = total
		m.mu.Unlock()
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		m.draw(time.Since(m.began))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// draw writes the progress line; passed is the time since the start.
func (m *Meter) draw(passed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.midLine {
		return
	}
	text := []rune("unwire: " + m.text(passed))
	if m.columns > 1 && len(text) >= m.columns {
		text = text[:m.columns-1]
	}
	m.drawn = true
	_, _ = io.WriteString(m.err, clearLine+string(text))
}

// clear removes the progress line. The caller must hold mu.
func (m *Meter) clear() {
	if m.drawn {
		m.drawn = false
		_, _ = io.WriteString(m.err, clearLine)
	}
}

// text returns the content of the progress line, such as files, rate and time left. The caller must
// hold mu.
func (m *Meter) text(passed time.Duration) string {
	text := m.o.What
	if m.o.Files > 1 {
		text += fmt.Sprintf(" · file %d of %d", max(len(m.files), 1), m.o.Files)
	}
	switch {
	case m.o.Unit == "":
	case m.o.Steps > 0:
		text += fmt.Sprintf(" · %s %d of %d", m.o.Unit, min(m.steps+1, m.o.Steps), m.o.Steps)
	default:
		text += fmt.Sprintf(" · %d %ss", m.steps, m.o.Unit)
	}
	rate := float64(m.bytes) / passed.Seconds()
	switch {
	case m.bytes == 0:
		return text + fmt.Sprintf(" · %d s", int(passed.Seconds()))
	case m.total < m.bytes: // not known, or read twice
		return text + fmt.Sprintf(" · %s · %s/s", size(float64(m.bytes)), size(rate))
	}
	left := time.Duration(float64(m.total-m.bytes) / rate * float64(time.Second)).Round(time.Second)
	return text + fmt.Sprintf(" · %s of %s (%d %%) · %s/s · %s left",
		size(float64(m.bytes)), size(float64(m.total)), 100*m.bytes/m.total, size(rate), left)
}

// size formats a number of bytes with a unit, such as "1.5 MB".
func size(n float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	i := 0
	for ; n >= 1000 && i < len(units)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

// A watched is a writer that removes the progress line before it writes. It replaces stdout and stderr
// while the line is shown.
type watched struct {
	// m is the meter that shows the progress line.
	m *Meter

	// w is the underlying writer.
	w io.Writer
}

// Write removes the progress line, and writes p.
func (w *watched) Write(p []byte) (int, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.clear()
	if len(p) > 0 {
		w.m.midLine = p[len(p)-1] != '\n'
	}
	return w.w.Write(p)
}

// Reader returns a reader that counts the bytes read from r as progress. file identifies the source.
func (m *Meter) Reader(file string, r io.Reader) io.Reader {
	if m == nil {
		return r
	}
	counted := &reader{m, file, r}
	if s, ok := r.(io.Seeker); ok {
		return struct {
			*reader
			io.Seeker
		}{counted, s}
	}
	return counted
}

// A reader counts the bytes that are read through it.
type reader struct {
	// m is the meter to which the bytes are reported.
	m *Meter

	// file is the file that the bytes belong to.
	file string

	// r is the underlying reader.
	r io.Reader
}

// Read reads from the underlying reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.m.Add(r.file, n)
	return n, err
}
