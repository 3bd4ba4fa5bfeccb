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

const (
	delay = time.Second
	every = 250 * time.Millisecond

	// clearLine moves to the beginning of the line and clears it.
	clearLine = "\r\x1b[K"
)

// Options say what is shown.
type Options struct {
	// Out and Err are stdout and stderr; what is written to them removes the line.
	Out, Err *term.Output

	// What is the work as a verb, such as "checking".
	What string

	// Files is how many files are to be read; 0: not known.
	Files int

	// Unit, if set, is what Step counts, such as "request", and Steps how many there are; 0:
	// not known.
	Unit  string
	Steps int

	// Total, if set, returns how many bytes are to be read; 0: not known. It is called once,
	// when the line appears for the first time.
	Total func(ctx context.Context) int64
}

// A Meter counts what was done. A nil Meter counts nothing.
type Meter struct {
	o       Options
	columns int
	began   time.Time
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	// out and err are the writers of the outputs before they were watched.
	out, err io.Writer

	mu    sync.Mutex
	steps int
	files map[string]bool // that were begun
	bytes int64
	total int64
	drawn bool

	// midLine says that the line has text that is not the meter's.
	midLine bool
}

// Start begins to count. Work done with the returned context is counted.
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

// Stop removes the line.
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

// Add counts bytes that were read of a file.
func (m *Meter) Add(file string, bytes int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[file] = true
	m.bytes += int64(bytes)
}

// Step counts one of the unit.
func (m *Meter) Step() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
}

// run draws until the context ends.
func (m *Meter) run(ctx context.Context) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.clear()
	}()
	select {
	case <-ctx.Done():
		return
	case <-time.After(delay):
	}
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

// draw writes the line.
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

// clear removes the line; mu is held.
func (m *Meter) clear() {
	if m.drawn {
		m.drawn = false
		_, _ = io.WriteString(m.err, clearLine)
	}
}

// text is the progress in words; mu is held.
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

// size is a number of bytes in words.
func size(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for ; n >= 1000 && i < len(units)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

// A watched writer removes the line before it writes.
type watched struct {
	m *Meter
	w io.Writer
}

func (w *watched) Write(p []byte) (int, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.clear()
	if len(p) > 0 {
		w.m.midLine = p[len(p)-1] != '\n'
	}
	return w.w.Write(p)
}

// Reader returns a reader that counts what is read of a file.
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

type reader struct {
	m    *Meter
	file string
	r    io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.m.Add(r.file, n)
	return n, err
}
