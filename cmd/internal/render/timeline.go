package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/decode/jsontree"
	"unwire/schema"
)

// timelineText is the length to which a frame's summary is truncated, in characters.
const timelineText = 240

// Timeline returns the frames of several exchanges in order of time. Consecutive similar frames of one
// exchange and direction are combined into one line.
func Timeline(exchanges []*decode.Exchange, defs *schema.Schema) []*contract.TimelineLine {
	type entry struct {
		at      time.Time
		ex      *decode.Exchange
		frame   *decode.Frame
		summary frameSummary
	}
	var entries []entry
	for _, ex := range exchanges {
		for i := range ex.Frames {
			f := &ex.Frames[i]
			entries = append(entries, entry{ex.Started.Add(f.T), ex, f, summariseFrame(f, func(f *decode.Frame) []*field.Field {
				return decode.View{Type: app.FrameType(defs, ex.Call, f.Dir)}.Fields(f.Tree)
			})})
		}
	}
	// Frames of all exchanges are interleaved by time.
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })

	var lines []*contract.TimelineLine
	var last *entry
	for i := range entries {
		e := &entries[i]
		line := &contract.TimelineLine{
			Exchange: e.ex.ID, Direction: e.frame.Dir.String(), First: e.frame.Seq, Last: e.frame.Seq,
			Milliseconds: app.Millis(e.at.Sub(entries[0].at)), Bytes: len(e.frame.Raw),
		}
		// A frame that continues the previous one extends its line.
		if last != nil && last.ex == e.ex && last.frame.Dir == e.frame.Dir && last.summary.extend(&e.summary) {
			joined := lines[len(lines)-1]
			joined.Last, joined.Bytes, joined.Summary = line.Last, joined.Bytes+line.Bytes, last.summary.String()
			continue
		}
		line.Summary = e.summary.String()
		lines = append(lines, line)
		last = e
	}
	return lines
}

// summariseFrame returns the summary of a frame: of the fields of its message, which read returns, or of
// its JSON or text.
func summariseFrame(f *decode.Frame, read func(*decode.Frame) []*field.Field) frameSummary {
	switch {
	case f.End != nil:
		return frameSummary{path: strings.Join(endLines(f.End), "; ")}
	case f.Tree != nil:
		return summarise(read(f))
	}
	text := ""
	if v, err := jsontree.Parse(f.Data); err == nil {
		text = summariseJSON(v, 0)
	} else {
		text = strings.ToValidUTF8(CutLine(string(f.Data[:min(len(f.Data), 4*timelineText)]), timelineText), "·")
	}
	return frameSummary{path: strings.TrimSpace(f.Event + " " + text)}
}

// summariseJSON formats a JSON value on one line, with long texts truncated. Of an array, it prints the
// number of elements and the last one, because requests to language models repeat the whole conversation
// and add to its end.
func summariseJSON(v jsontree.Value, depth int) string {
	// Deep or long values are shortened, because a summary is one line.
	const deepest, longest = 5, 60
	switch v.Kind() {
	case jsontree.String:
		return strconv.Quote(CutLine(v.Text(), longest))
	case jsontree.Object:
		var members []string
		for item := range v.Items() {
			if depth == deepest {
				return "{…}"
			}
			if text := summariseJSON(item, depth+1); text != "null" && text != "[]" {
				members = append(members, item.Name()+": "+text)
			}
		}
		return "{" + strings.Join(members, ", ") + "}"
	case jsontree.Array:
		items := slices.Collect(v.Items())
		switch {
		case len(items) == 0:
			return "[]"
		case depth == deepest:
			return "[…]"
		case len(items) == 1:
			return "[" + summariseJSON(items[0], depth+1) + "]"
		}
		return fmt.Sprintf("[%d: … %s]", len(items), summariseJSON(items[len(items)-1], depth+1))
	}
	return string(v.Raw())
}

// WriteTimeline prints the lines of a timeline below a heading, truncated to the width of the terminal.
func WriteTimeline(out *term.Output, lines []*contract.TimelineLine) error {
	heading := "Time, exchange, arrow, frame numbers, bytes and content of each frame. Arrows: " + arrows + "."
	if _, err := fmt.Fprint(out, out.Wrap(out.Dim(heading)+"\n")); err != nil {
		return err
	}
	for _, l := range lines {
		arrow, frames := Arrow(captures.Up), fmt.Sprint(l.First)
		if l.Direction == captures.Down.String() {
			arrow = Arrow(captures.Down)
		}
		if l.Last != l.First {
			frames += fmt.Sprintf("–%d", l.Last)
		}
		line := fmt.Sprintf("%9.1f ms  #%-3d %s %-7s %7s  %s", l.Milliseconds, l.Exchange, arrow, frames,
			app.ByteSize(int64(l.Bytes)), CutLine(term.Clean(l.Summary), timelineText))
		if out.Width > 0 {
			line = CutLine(line, out.Width)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
