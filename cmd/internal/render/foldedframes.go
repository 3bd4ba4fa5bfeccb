package render

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/field"
)

// FoldedFrames prints one line for each run of similar frames: their common path of fields, with streamed
// pieces of text joined. Errors, notes and irregularities are printed below the line of their frame.
func FoldedFrames(out *term.Output, w io.Writer, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes func(*decode.Frame) []*contract.PlaceNote) {
	read := func(f *decode.Frame) iter.Seq[*field.Field] { return v.Of(at.Call, f.Dir).Each(f.Tree) }
	if len(frames) > 0 {
		heading := "Frame numbers, time since the request began, and content (×N: N similar frames in a row):"
		fmt.Fprint(w, out.Wrap(out.Dim(heading)+"\n"))
	}
	var groups []frameGroup
	flush := func() {
		for i := range groups {
			groupLine(out, w, &groups[i])
		}
		groups = groups[:0]
	}
	for i := range frames {
		f := &frames[i]
		var before, after []string
		if at.Joined != nil {
			before, after = contract.Anomalies(at.Joined, f)
		}

		// An anomaly ends the current group, because it belongs between two frames.
		if len(before) > 0 {
			flush()
		}
		for _, s := range before {
			fmt.Fprintf(w, "%s %s\n", Arrow(f.Dir), out.Red(s))
		}

		// Consecutive frames with similar summaries share a line.
		groups = appendToGroups(groups, f, foldedSummary(at, f, read))
		list := notes(f)
		if f.Err == nil && len(list) == 0 && len(after) == 0 && !f.Partial {
			continue
		}
		flush() // what follows is about this frame
		if f.Partial {
			fmt.Fprintf(w, "    %s\n", out.Red("truncated"))
		}
		if f.Err != nil {
			fmt.Fprintf(w, "    %s %s\n", out.Red("error:"), term.Clean(app.PlainText(f.Err)))
		}
		Notes(out, w, list, "    ")
		for _, s := range after {
			fmt.Fprintf(w, "    %s\n", out.Red(s))
		}
	}
	flush()
}

// foldedSummary summarises the content of a frame. read returns the fields of a frame's message.
func foldedSummary(at conversation.Resolved, f *decode.Frame, read func(*decode.Frame) iter.Seq[*field.Field]) frameSummary {
	switch {
	case f.Close != nil:
		return frameSummary{path: f.Close.String()}
	case at.Transport != captures.HTTP && f.Tree == nil && len(f.Data) > 0 && !decode.IsText(f.Data):
		return frameSummary{path: fmt.Sprintf("bytes[%d] %s", len(f.Data), hexCut(f.Data, maxText))}
	}
	return summariseFrame(f, read)
}

// groupLine prints a group of similar frames on one line, truncated to the width of the terminal.
func groupLine(out *term.Output, w io.Writer, g *frameGroup) {
	var l colouredLine
	l.add(out.Bold, fmt.Sprintf("%s %-7s", g.Arrow, g.Span()))
	l.add(out.Dim, fmt.Sprintf(" %8.1f ms  ", g.Milliseconds))
	// A repeated path is printed once with a count, then the joined text, then the other fields.
	s := &g.Summary
	l.add(out.Cyan, s.path)
	gap := ""
	if s.path != "" {
		gap = " "
	}
	if n := g.Last - g.First + 1; n > 1 {
		l.add(out.Dim, fmt.Sprintf("%s×%d", gap, n))
		gap = " "
	}
	if len(s.texts) > 0 {
		l.add(out.Green, gap+strconv.Quote(strings.Join(s.texts, "")))
		gap = " "
	}
	if s.leaf != "" {
		l.add(out.Yellow, gap+s.leaf)
		gap = " "
	}
	for i, name := range s.names {
		l.add(nil, map[bool]string{true: gap + "{", false: ", "}[i == 0])
		l.add(out.Cyan, name)
		doubtful := i < len(s.doubtful) && s.doubtful[i]
		if doubtful {
			l.add(out.Red, "?")
		}
		if i < len(s.values) && s.values[i] != "" {
			l.add(nil, ": ")
			l.add(valueColour(out, s.values[i], doubtful), s.values[i])
		}
	}
	if s.more > 0 {
		l.add(out.Dim, fmt.Sprintf(", … %d more", s.more))
	}
	if len(s.names) > 0 {
		l.add(nil, "}")
	}

	// Off a terminal, lines are cut at a fixed width, so that output does not depend on the terminal.
	width := out.Width
	if width <= 0 {
		width = offTerminal
	}
	fmt.Fprintln(w, l.within(width))
}

// offTerminal is the width of such lines in columns if stdout is not a terminal.
const offTerminal = 240

// valueColour returns the function that colours a value: text, other values, and values of uncertain type
// differ.
func valueColour(out *term.Output, value string, doubtful bool) func(string) string {
	switch {
	case doubtful:
		return out.Red
	case strings.HasPrefix(value, `"`):
		return out.Green
	}
	return out.Yellow
}

// A colouredLine is a line of coloured texts. It is truncated before colours are applied, because escape
// sequences have no width.
type colouredLine []colouredText

// A colouredText is a text with the function that colours it.
type colouredText struct {
	// text is the text without escape sequences.
	text string

	// colour adds the escape sequences.
	colour func(string) string
}

// add appends text in a colour; a nil colour leaves it plain. Control characters in the text are escaped.
func (l *colouredLine) add(colour func(string) string, s string) {
	if colour == nil {
		colour = func(s string) string { return s }
	}
	*l = append(*l, colouredText{term.Clean(s), colour})
}

// within returns the coloured line, truncated to a width in columns.
func (l colouredLine) within(width int) string {
	total := 0
	for _, t := range l {
		total += term.Cells(t.text)
	}
	var b strings.Builder
	for i, t := range l {
		n := term.Cells(t.text)
		if total <= width || i < len(l)-1 && n < width {
			b.WriteString(t.colour(t.text))
			width, total = width-n, total-n
			continue
		}
		b.WriteString(t.colour(CutLine(t.text+"…", max(width, 1))))
		break
	}
	return strings.TrimRight(b.String(), " ")
}
