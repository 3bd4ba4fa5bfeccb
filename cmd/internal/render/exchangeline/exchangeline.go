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

	"github.com/clipperhouse/displaywidth"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
)

const (
	// maxProgram and maxCode bound the width of these columns.
	maxProgram, maxCode = 12, 18

	// minCall is the least width of the call. Where it would get less, sizes and the time of
	// day are left out.
	minCall = 24

	ellipsis = "…"
)

// A Printer makes lines. Its columns grow with what was printed before.
type Printer struct {
	out           *term.Output
	program, code int // widths of the columns
}

// NewPrinter returns a printer of lines for an output.
func NewPrinter(out *term.Output) *Printer { return &Printer{out: out, code: len("ok")} }

// Line returns the line of an exchange for a terminal of a width in columns; 0 is no limit.
func (p *Printer) Line(l *contract.Exchange, width int) string {
	code := fit(render.Ending(l), maxCode)
	if code == "" {
		code = "-"
	}
	p.code = max(p.code, displaywidth.String(code))
	program := ""
	if l.Process != nil {
		program = fit(l.Process.Name, maxProgram)
		p.program = max(p.program, displaywidth.String(program))
	}
	clock := ""
	if t, err := time.Parse(time.RFC3339Nano, l.Started); err == nil {
		clock = t.Local().Format("15:04:05")
	}

	id := fmt.Sprintf("%4d", l.ID)
	bytes := fmt.Sprintf("%6s↑ %6s↓", app.ByteSize(l.BytesUp), app.ByteSize(l.BytesDown))
	duration := fmt.Sprintf("%8s", durationText(l.DurationMS))
	left, right := []string{id, clock}, []string{p.coded(code), bytes, duration}
	if p.program > 0 {
		left = append(left, pad(program, p.program))
	}

	room := width - widthOf(left) - widthOf(right)
	if width > 0 && room < minCall {
		left, right = []string{id}, []string{p.coded(code), duration}
		room = width - widthOf(left) - widthOf(right)
	}
	call := term.Clean(callText(l))
	if width > 0 {
		call = pad(shorten(call, max(room-1, 1)), max(room-1, 1))
	}
	return strings.TrimRight(strings.Join(append(append(left, call), right...), " "), " ")
}

// coded is the column of the code, in red unless the exchange ended well.
func (p *Printer) coded(code string) string {
	text := pad(code, p.code)
	if code == "ok" || code == "-" {
		return text
	}
	return p.out.Red(code) + text[len(code):]
}

// widthOf is the width of columns with a space behind each.
func widthOf(columns []string) (n int) {
	for _, c := range columns {
		// Colours have no width.
		n += displaywidth.Options{ControlSequences: true}.String(c) + 1
	}
	return n
}

// callText names the method, the host and the path of an exchange; that of a call of an RPC,
// which is always a POST, is left out.
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

// shorten cuts a text in the middle to a width. More of its end is kept: there is the name
// of the method.
func shorten(text string, width int) string {
	if displaywidth.String(text) <= width {
		return text
	}
	const tail = 2.0 / 3
	end := int(float64(width-1) * tail)
	return first(text, width-1-end) + ellipsis + last(text, end)
}

// first is as much of the beginning of a text as fits a width.
func first(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += displaywidth.Rune(r); n > width {
			return text[:i]
		}
	}
	return text
}

// last is as much of the end of a text as fits a width.
func last(text string, width int) string {
	n := displaywidth.String(text)
	for i, r := range text {
		if n <= width {
			return text[i:]
		}
		n -= displaywidth.Rune(r)
	}
	return ""
}

// fit cuts the end of a text off.
func fit(text string, width int) string {
	return displaywidth.TruncateString(term.Clean(text), width, ellipsis)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-displaywidth.String(text), 0))
}

// durationText is a duration of milliseconds in the unit that suits it.
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
