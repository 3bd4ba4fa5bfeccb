// Package exchangeline prints an exchange as one line, when it has ended: capture and
// 'ls --follow' print them while traffic is recorded, so no table can be aligned over all
// of them.
//
// Lines of the contract go in, text comes out that fits the width of a terminal.
package exchangeline

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
)

const (
	// maxProgram and maxCode bound the width of these columns.
	maxProgram, maxCode = 12, 14

	// minCall is the least width of the call in columns. If less is left on a narrow terminal, other
	// columns (program, sizes, time of day) are left out.
	minCall = 24
)

// A Printer formats finished exchanges, one per line. Its columns grow to the widest value so far.
type Printer struct {
	// out is the output, with its colours.
	out *term.Output

	// program is the current width of the column with the program, in cells.
	program int

	// code is the current width of the column with the code, in cells.
	code int

	// headed means that Heading has returned the heading.
	headed bool
}

// NewPrinter returns a Printer for an output.
func NewPrinter(out *term.Output) *Printer { return &Printer{out: out, code: len("ok")} }

// Heading returns a line that explains the columns of the lines below it. Later calls return "".
func (p *Printer) Heading() string {
	if p.headed {
		return ""
	}
	p.headed = true
	return "Each line is a finished exchange: number, time, program, call, result, size of what the client sent (↑) and received (↓), and duration.\n"
}

// Line formats an exchange as a line for a terminal with a width in columns; 0 means no limit.
func (p *Printer) Line(l *contract.Exchange, width int) string {
	code := term.Shorten(term.Clean(render.Ending(l)), maxCode, term.End)
	if code == "" {
		code = "-"
	}
	p.code = max(p.code, term.Cells(code))
	program := ""
	if l.Process != nil {
		program = term.Shorten(term.Clean(l.Process.Name), maxProgram, term.Middle)
		p.program = max(p.program, term.Cells(program))
	}
	clock := ""
	if t, err := time.Parse(time.RFC3339Nano, l.Started); err == nil {
		clock = t.Local().Format("15:04:05")
	}

	// Columns only grow, so that consecutive lines stay aligned.
	id := fmt.Sprintf("%4d", l.ID)
	bytes := fmt.Sprintf("%7s↑ %7s↓", app.ByteSize(l.BytesUp), app.ByteSize(l.BytesDown))
	duration := fmt.Sprintf("%8s", durationText(l.DurationMS))
	left, right := []string{id, clock}, []string{p.coded(code), bytes, duration}
	if p.program > 0 {
		left = append(left, pad(program, p.program))
	}

	// On a narrow terminal, time, sizes and program are dropped in favour of the call.
	room := width - widthOf(left) - widthOf(right)
	if width > 0 && room < minCall {
		left, right = []string{id}, []string{p.coded(code), duration}
		room = width - widthOf(left) - widthOf(right)
	}
	call := term.Clean(callText(l))
	if width > 0 {
		call = pad(term.Shorten(call, max(room-1, 1), term.Middle), max(room-1, 1))
	}
	return strings.TrimRight(strings.Join(append(append(left, call), right...), " "), " ")
}

// coded formats the column with the status code, in red unless it is "ok" or "-".
func (p *Printer) coded(code string) string {
	text := pad(code, p.code)
	if code == "ok" || code == "-" {
		return text
	}
	return p.out.Red(code) + text[len(code):]
}

// widthOf returns the total width of columns that are separated by one space.
func widthOf(columns []string) (n int) {
	for _, c := range columns {
		n += term.Cells(c) + 1
	}
	return n
}

// callText formats what was called: HTTP method, host and path. For an RPC by POST, the HTTP method is
// left out.
func callText(l *contract.Exchange) string {
	u, err := url.Parse(l.URL)
	if err != nil || u.Host == "" {
		return strings.TrimSpace(l.Method + " " + l.URL)
	}
	where := u.Host + u.Path
	if u.RawQuery != "" {
		where += "?" + u.RawQuery
	}
	switch {
	case l.Transport != "":
		return string(l.Transport) + " " + where
	case l.Service != "" && l.Method == "POST":
		return where
	}
	return l.Method + " " + where
}

// pad appends spaces to text up to a width in columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-term.Cells(text), 0))
}

// durationText formats a duration in milliseconds with a suitable unit.
func durationText(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 600_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return fmt.Sprintf("%.0f min", ms/60_000)
}
