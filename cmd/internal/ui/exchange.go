package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/decode"
)

const (
	// maxFrameLines bounds the lines of one answer.
	maxFrameLines = 500

	// maxBins bounds the columns of a timeline.
	maxBins = 2000

	// maxSummary is how many bytes of a frame's summary are sent.
	maxSummary = 500

	// leastWait is the shortest pause that is shown as a wait, in milliseconds.
	leastWait = 1000
)

// exchangeEndpoints returns the API endpoints about one exchange and the list of its frames.
func exchangeEndpoints() []endpoint {
	return []endpoint{
		{path: "exchange", answer: answerExchange},
		{path: "frames", answer: answerFrames},
		{path: "frames/position", answer: answerFramePosition},
		{path: "lanes", answer: answerLanes},
	}
}

// answerExchange implements the endpoint exchange. It returns what the page shows of an exchange above
// its frames: its line in the list, headers, notes, damage, and the number of frames.
func answerExchange(ctx context.Context, q *request) (any, error) {
	f, d, err := q.document(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	list, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	own := list.line(d.id)
	if own == nil {
		return nil, captures.ErrNoExchange
	}
	ex, err := line(own)
	if err != nil {
		return nil, err
	}
	at := d.at
	rows, folded := len(at.Frames), false
	if lines := d.foldedLines(); lines != nil {
		rows, folded = len(lines), true
	}
	return map[string]any{
		"v": 1, "last": d.last, "exchange": ex, "code": at.Code, "message": at.Message, "damage": d.damage, "head": at.Head,
		"joined":           at.Joined != nil,
		"request_headers":  headerPairs(at.RequestHeaders),
		"response_headers": headerPairs(at.ResponseHeaders),
		"trailers":         headerPairs(at.ResponseTrailers),
		"notes":            d.notes.Whole(),
		"frames":           len(at.Frames), "lines": rows, "folded": folded,
	}, nil
}

// headerPairs returns headers as pairs of name and value, in their order.
func headerPairs(h captures.Headers) [][2]string {
	out := make([][2]string, len(h))
	for i := range h {
		out[i] = [2]string{h[i].Name, h[i].Value}
	}
	return out
}

// A frameLine is a line of the list of frames: one frame or a run of similar frames.
type frameLine struct {
	// Line is the line as a contract.TimelineLine.
	Line json.RawMessage `json:"line"`

	// Data is the total size of the payloads in bytes, after decompression.
	Data int `json:"data"`

	// Wait is the pause before the first frame of the line, in milliseconds; missing if it is shorter than
	// leastWait.
	Wait float64 `json:"wait_ms,omitempty"`

	// Opcode is the name of the WebSocket opcode; "" for other transports.
	Opcode string `json:"opcode,omitempty"`

	// Event is the name of a server-sent event; "" for none.
	Event string `json:"event,omitempty"`

	// End means that a frame ends the stream with a status.
	End bool `json:"end,omitempty"`

	// Code is that status: "ok" or the code of an error; "" if no frame ends the stream.
	Code string `json:"code,omitempty"`

	// Compressed means that at least one frame was compressed.
	Compressed bool `json:"compressed,omitempty"`

	// Partial means that at least one frame is incomplete.
	Partial bool `json:"partial,omitempty"`

	// Error is the first error of decoding these frames; "" for none.
	Error string `json:"error,omitempty"`

	// Exchange is the number of the exchange that carried the frame, if several exchanges carry the
	// conversation.
	Exchange int64 `json:"exchange,omitempty"`

	// Tool means that at least one of the frames has a tool call or its result.
	Tool bool `json:"tool,omitempty"`

	// Notes are the notes and marks on the frames and their fields.
	Notes []*contract.PlaceNote `json:"notes,omitempty"`
}

// answerFrames implements the endpoint frames. It returns a range of the lines of the list of frames.
// With the parameter all, each frame has its own line; otherwise a run of similar frames is one line.
func answerFrames(ctx context.Context, q *request) (any, error) {
	_, d, err := q.document(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	from, to, err := q.window(maxFrameLines)
	if err != nil {
		return nil, err
	}
	var folded []*contract.TimelineLine
	if q.query.Get("all") == "" {
		folded = d.foldedLines()
	}
	total := len(d.at.Frames)
	if folded != nil {
		total = len(folded)
	}
	out := []*frameLine{}
	for i := min(from, total); i < min(to, total); i++ {
		var l *frameLine
		var err error
		if folded != nil {
			l, err = d.lineOf(folded[i])
		} else {
			l, err = d.lineOf(d.single(i))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return map[string]any{"v": 1, "last": d.last, "total": total, "folded": folded != nil, "lines": out}, nil
}

// single returns the line of the frame at position i alone.
func (d *document) single(i int) *contract.TimelineLine {
	ex := *d.at.Exchange
	ex.Frames = d.at.Frames[i : i+1]
	l := render.Timeline(&ex, d.defs)[0]
	l.Milliseconds = float64((d.at.Frames[i].T - d.at.Frames[0].T).Microseconds()) / 1000
	return l
}

// lineOf returns a line with the details of its frames that the page shows.
func (d *document) lineOf(l *contract.TimelineLine) (*frameLine, error) {
	shown := *l
	if len(shown.Summary) > maxSummary {
		shown.Summary = strings.ToValidUTF8(shown.Summary[:maxSummary], "") + "…"
	}
	raw, err := line(&shown)
	if err != nil {
		return nil, err
	}
	out := &frameLine{Line: raw}
	dir := captures.Up
	if l.Direction == captures.Down.String() {
		dir = captures.Down
	}
	for seq := l.First; seq <= l.Last; seq++ {
		i, err := d.position(dir, seq)
		if err != nil {
			return nil, err
		}
		f := &d.at.Frames[i]
		if seq == l.First && i > 0 {
			if wait := float64((f.T - d.at.Frames[i-1].T).Microseconds()) / 1000; wait >= leastWait {
				out.Wait = wait
			}
		}
		out.add(d, f)
	}
	return out, nil
}

// add adds the details of a frame to a line.
func (l *frameLine) add(d *document, f *decode.Frame) {
	l.Data += len(f.Data)
	l.Compressed = l.Compressed || f.Compressed()
	l.Partial = l.Partial || f.Partial
	l.Event = cmp.Or(l.Event, f.Event)
	l.Tool = l.Tool || d.tools[f.Dir&1][f.Seq]
	if f.Opcode != 0 {
		l.Opcode = decode.OpcodeName(f.Opcode)
	}
	if f.End != nil {
		l.End, l.Code = true, "ok"
		if f.End.Error != nil {
			l.Code = f.End.Error.Code
		}
	}
	if f.Err != nil && l.Error == "" {
		l.Error = app.PlainText(f.Err)
	}
	if d.at.Joined != nil {
		l.Exchange = d.at.Joined.OriginOf(f).Exchange
	}
	l.Notes = append(l.Notes, d.notes.Of(f)...)
}

// answerFramePosition implements the endpoint frames/position. It returns the position of the line that
// contains a frame, in the same list as answerFrames.
func answerFramePosition(ctx context.Context, q *request) (any, error) {
	_, d, err := q.document(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	f, err := d.frame(q)
	if err != nil {
		return nil, err
	}
	at, err := d.position(f.Dir, f.Seq)
	if err != nil {
		return nil, err
	}
	if q.query.Get("all") == "" {
		if folded := d.foldedLines(); folded != nil {
			at = slices.IndexFunc(folded, func(l *contract.TimelineLine) bool {
				return l.Direction == f.Dir.String() && l.First <= f.Seq && f.Seq <= l.Last
			})
		}
	}
	return map[string]any{"v": 1, "position": at}, nil
}

// A bin is what was sent in one direction during one column of the timeline.
type bin struct {
	// Column is the number of the column, from 0.
	Column int `json:"column"`

	// Dir is the direction, up or down.
	Dir string `json:"dir"`

	// First is the number of the first frame in the bin.
	First int `json:"first"`

	// Frames is the number of frames.
	Frames int `json:"frames"`

	// Bytes is the total size of the frames' payloads as they were sent.
	Bytes int `json:"bytes"`

	// End means that a frame ends the stream.
	End bool `json:"end,omitempty"`

	// Error means that a frame could not be decoded or ends the stream with an error.
	Error bool `json:"error,omitempty"`
}

// answerLanes implements the endpoint lanes. It divides the duration of the exchange into as many columns
// as the parameter columns says, and returns what was sent during each column in each direction.
func answerLanes(ctx context.Context, q *request) (any, error) {
	_, d, err := q.document(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	columns, err := q.number("columns", 400)
	if err != nil {
		return nil, err
	}
	columns = min(max(columns, 10), maxBins)
	bins := []*bin{}
	answer := map[string]any{"v": 1, "columns": columns, "bins": &bins, "duration_ms": 0.0}
	frames := d.at.Frames
	if len(frames) == 0 {
		return answer, nil
	}
	start, end := frames[0].T, frames[0].T
	for i := range frames {
		start, end = min(start, frames[i].T), max(end, frames[i].T)
	}
	answer["duration_ms"] = float64((end - start).Microseconds()) / 1000
	by := map[[2]int]*bin{}
	for i := range frames {
		f := &frames[i]
		column := 0
		if end > start {
			column = int(int64(f.T-start) * (columns - 1) / int64(end-start))
		}
		key := [2]int{column, int(f.Dir & 1)}
		b := by[key]
		if b == nil {
			b = &bin{Column: column, Dir: f.Dir.String(), First: f.Seq}
			by[key] = b
			bins = append(bins, b)
		}
		b.Frames++
		b.Bytes += len(f.Raw)
		b.End = b.End || f.End != nil
		b.Error = b.Error || f.Err != nil || f.End != nil && f.End.Error != nil
	}
	return answer, nil
}
