package render

import (
	"cmp"
	"fmt"
	"iter"
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

// A TimelineFrames collects frames of several exchanges for a timeline. It keeps their summaries, not the frames.
type TimelineFrames struct {
	// Definitions describe the messages; nil for none.
	Definitions *schema.Schema

	// frames are the frames in the order in which they were added.
	frames []timelineFrame

	// memory is reused for one frame after another.
	memory decode.Memory
}

// A timelineFrame is one frame of a timeline.
type timelineFrame struct {
	// at is the time of the frame.
	at time.Time

	// exchange is the number of the frame's exchange.
	exchange int64

	// chunk orders the frames of one exchange that have the same time; see decode.Frame.Chunk.
	chunk int64

	// dir is the direction of the frame, seq its number in this direction, and bytes the size of its payload.
	dir        captures.Direction
	seq, bytes int

	// summary describes the content. Frames with the same content may share it.
	summary *frameSummary
}

// Add adds a frame of an exchange, which may be reused afterwards.
func (l *TimelineFrames) Add(ex *decode.Exchange, f *decode.Frame) {
	summary := summariseFrame(f, fieldsBy(l.Definitions, ex, &l.memory))
	e := timelineFrame{ex.Started.Add(f.T), ex.ID, f.Chunk(), f.Dir, f.Seq, len(f.Raw), &summary}
	if n := len(l.frames); n > 0 && l.frames[n-1].summary.equal(&summary) {
		e.summary = l.frames[n-1].summary
	}
	l.frames = append(l.frames, e)
}

// Lines returns the frames in order of time. Consecutive similar frames of one exchange and direction are
// combined into one line.
func (l *TimelineFrames) Lines() []*contract.TimelineLine {
	// Frames of all exchanges are interleaved by time.
	slices.SortStableFunc(l.frames, func(a, b timelineFrame) int {
		if c := a.at.Compare(b.at); c != 0 || a.exchange != b.exchange {
			return c
		}
		return cmp.Compare(a.chunk, b.chunk)
	})

	var lines []*contract.TimelineLine
	var summary frameSummary
	finish := func() {
		if len(lines) > 0 {
			lines[len(lines)-1].Summary = summary.String()
		}
	}
	for i := range l.frames {
		e := &l.frames[i]
		// A frame that continues the previous one extends its line.
		if i > 0 && l.frames[i-1].exchange == e.exchange && l.frames[i-1].dir == e.dir && summary.extend(e.summary) {
			line := lines[len(lines)-1]
			line.Last, line.Bytes = e.seq, line.Bytes+e.bytes
			continue
		}
		finish()
		summary = *e.summary
		lines = append(lines, &contract.TimelineLine{
			Exchange: e.exchange, Direction: e.dir.String(), First: e.seq, Last: e.seq,
			Milliseconds: app.Millis(e.at.Sub(l.frames[0].at)), Bytes: e.bytes,
		})
	}
	finish()
	return lines
}

// Timeline returns the lines of the timeline of one exchange.
func Timeline(ex *decode.Exchange, defs *schema.Schema) []*contract.TimelineLine {
	frames := TimelineFrames{Definitions: defs}
	for i := range ex.Frames {
		frames.Add(ex, &ex.Frames[i])
	}
	return frames.Lines()
}

// summariseFrame returns the summary of a frame: of the fields of its message, which read returns, or of
// its JSON or text.
func summariseFrame(f *decode.Frame, read func(*decode.Frame) iter.Seq[*field.Field]) frameSummary {
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
		return fmt.Sprintf("[… %d more, %s]", len(items)-1, summariseJSON(items[len(items)-1], depth+1))
	}
	return string(v.Raw())
}

// WriteTimeline prints the lines of a timeline below a heading, truncated to the width of the terminal.
func WriteTimeline(out *term.Output, lines []*contract.TimelineLine) error {
	heading := "Each line is a frame, or several similar ones: time, number of the exchange, arrow, numbers of the frames, size and content. " + arrowLegend
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
