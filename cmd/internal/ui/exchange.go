package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"unwire/captures"
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

// exchangeEndpoints are those of one exchange.
func exchangeEndpoints() []endpoint {
	return []endpoint{
		{path: "exchange", answer: answerExchange},
		{path: "frames", answer: answerFrames},
		{path: "frames/position", answer: answerFramePosition},
		{path: "lanes", answer: answerLanes},
	}
}

// answerExchange returns the head of an exchange: its line, headers, notes and relations.
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

func headerPairs(h captures.Headers) [][2]string {
	out := make([][2]string, len(h))
	for i := range h {
		out[i] = [2]string{h[i].Name, h[i].Value}
	}
	return out
}

// A frameLine is a frame, or a run of similar frames, on one line.
type frameLine struct {
	// Line is a TimelineLine.
	Line json.RawMessage `json:"line"`

	// Data is the size of the payloads after decompression.
	Data int `json:"data"`

	// Wait is how long nothing happened before the first frame, in milliseconds; missing if that is short.
	Wait float64 `json:"wait_ms,omitempty"`

	// Opcode is that of a frame of a WebSocket, and Event the name of an event.
	Opcode string `json:"opcode,omitempty"`
	Event  string `json:"event,omitempty"`

	End        bool   `json:"end,omitempty"`
	Code       string `json:"code,omitempty"`
	Compressed bool   `json:"compressed,omitempty"`
	Partial    bool   `json:"partial,omitempty"`
	Error      string `json:"error,omitempty"`

	// Exchange is the exchange that carried the frame, in a conversation in pieces.
	Exchange int64 `json:"exchange,omitempty"`

	// Tool reports that the transcript has a tool call or a result in these frames.
	Tool bool `json:"tool,omitempty"`

	// Notes are those about the frames and their fields.
	Notes []*contract.PlaceNote `json:"notes,omitempty"`
}

// answerFrames returns a window of the lines of an exchange. With the parameter all, each frame
// has a line.
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

// single returns the line of one frame by its position.
func (d *document) single(i int) *contract.TimelineLine {
	ex := *d.at.Exchange
	ex.Frames = d.at.Frames[i : i+1]
	l := render.Timeline([]*decode.Exchange{&ex}, d.defs)[0]
	l.Milliseconds = float64((d.at.Frames[i].T - d.at.Frames[0].T).Microseconds()) / 1000
	return l
}

// lineOf adds to a line what the page shows of its frames.
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

// add adds a frame to a line.
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
		l.Error = f.Err.Error()
	}
	if d.at.Joined != nil {
		l.Exchange = d.at.Joined.OriginOf(f).Exchange
	}
	l.Notes = append(l.Notes, d.notes.Of(f)...)
}

// answerFramePosition returns the position of the line that has a frame.
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

// A bin is what passed in one column of a timeline.
type bin struct {
	// Column is its number.
	Column int `json:"column"`

	// Dir is the lane.
	Dir string `json:"dir"`

	// First is the number of the first frame.
	First int `json:"first"`

	Frames int  `json:"frames"`
	Bytes  int  `json:"bytes"`
	End    bool `json:"end,omitempty"`
	Error  bool `json:"error,omitempty"`
}

// answerLanes returns a timeline: the frames of both directions to scale in time, by columns.
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
