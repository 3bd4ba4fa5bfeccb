package ui

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/ui/outline"
	"unwire/decode"
	"unwire/decode/field"
)

const (
	// maxRowsSent, maxBytesSent and maxTextRows bound one answer: rows of a tree, bytes of a hex dump, rows of text.
	maxRowsSent  = 500
	maxBytesSent = 16 << 10
	maxTextRows  = 200

	// maxPreview is how many characters of a value a row shows. maxValue is how many bytes of one value are sent.
	maxPreview = 200
	maxValue   = 1 << 20

	// textColumns is the longest row of text, in bytes.
	textColumns = 160

	// maxClosed bounds the closed rows of a tree.
	maxClosed = 10_000
)

// frameEndpoints are those of one frame.
func frameEndpoints() []endpoint {
	return []endpoint{
		{path: "frame", answer: answerFrame},
		{path: "rows", answer: answerRows},
		{path: "bytes", answer: answerBytes},
		{path: "text", answer: answerText},
		{path: "at", answer: answerRowAt},
		{path: "value", answer: answerValue},
	}
}

// withFrame calls do with the frame that a request names.
func withFrame(ctx context.Context, q *request, do func(*document, *decode.Frame) (any, error)) (any, error) {
	_, d, err := q.document(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	f, err := d.frame(q)
	if err != nil {
		return nil, err
	}
	return do(d, f)
}

// A layerInfo describes a layer of a frame.
type layerInfo struct {
	Row      int32  `json:"row"`
	Encoding string `json:"encoding,omitempty"`
	Form     string `json:"form"`
	Len      int    `json:"len"`
	Path     string `json:"path,omitempty"`
	Lines    int    `json:"lines"`
}

// answerFrame returns a frame without its bytes and its tree, which are asked for in pieces.
func answerFrame(ctx context.Context, q *request) (any, error) {
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		head := *f
		head.Tree, head.Inner, head.Raw, head.Data = nil, nil, nil, nil
		l := contract.NewFrame(d.at, &head, d.view(f), d.views.FieldsOf)
		l.Len, l.Notes = len(f.Raw), d.notes.Of(f)
		if md := d.view(f).Type; md != nil && f.Tree != nil {
			l.Type = string(md.FullName())
		}
		raw, err := line(l)
		if err != nil {
			return nil, err
		}
		o := d.outline(f)
		layers := make([]layerInfo, len(o.Layers))
		for i := range o.Layers {
			layer := &o.Layers[i]
			layers[i] = layerInfo{Row: layer.Row, Encoding: layer.Encoding, Form: layer.Form, Len: len(layer.Data), Lines: len(textRows(layer.Data))}
			if layer.Row >= 0 {
				layers[i].Path = o.FullPath(layer.Row)
			}
		}
		return map[string]any{
			"v": 1, "last": d.last, "frame": raw, "raw_len": len(f.Raw), "data_len": len(f.Data), "codec": d.at.CodecOf(f),
			"rows": len(o.Rows), "cut": o.Cut, "layers": layers,
		}, nil
	})
}

// A rowLine is a row of a frame's tree.
type rowLine struct {
	Row    int32 `json:"row"`
	Depth  int32 `json:"depth"`
	Parent int32 `json:"parent"`
	Layer  int32 `json:"layer"`

	// Path is the path in the layer, and Full that from the message on.
	Path string `json:"path"`
	Full string `json:"full"`

	// Inside is the number of rows inside the row.
	Inside int32 `json:"inside"`

	// Opens is the layer that the value contains; 0 for none.
	Opens int32 `json:"opens,omitempty"`

	Off int `json:"off"`
	End int `json:"end"`
	Val int `json:"val"`

	// Field is the field without the fields inside it and without its value.
	Field *field.Field `json:"field,omitempty"`

	// Name and Kind are set for JSON.
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`

	// Text is the value, and Cut reports that it is longer.
	Text string `json:"text"`
	Cut  bool   `json:"cut,omitempty"`
}

// answerRows returns a window of the visible rows of a frame's tree.
func answerRows(ctx context.Context, q *request) (any, error) {
	from, to, err := q.window(maxRowsSent)
	if err != nil {
		return nil, err
	}
	closed, err := q.rows("closed")
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		visible := o.Visible(closed)
		list := []*rowLine{}
		for _, i := range visible.Rows(from, to) {
			list = append(list, rowOf(o, i))
		}
		answer := map[string]any{"v": 1, "total": visible.Total, "rows": list}
		if q.query.Has("row") {
			row, err := q.number("row", 0)
			if err != nil {
				return nil, err
			}
			if row < int64(len(o.Rows)) {
				answer["position"] = visible.Position(int32(row))
				answer["selected"] = rowOf(o, int32(row))
			}
		}
		return answer, nil
	})
}

// rows returns a parameter that is a list of row numbers.
func (q *request) rows(name string) (list []int32, err error) {
	text := q.query.Get(name)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || len(list) == maxClosed {
			return nil, badRequest("%s must be at most %d row numbers, not %q", name, maxClosed, part)
		}
		list = append(list, int32(n))
	}
	return list, nil
}

func rowOf(o *outline.Outline, i int32) *rowLine {
	r := &o.Rows[i]
	l := &rowLine{
		Row: i, Depth: r.Depth, Parent: r.Parent, Layer: r.Layer, Path: o.Path(i), Full: o.FullPath(i), Inside: r.Last - i,
		Opens: r.Opens, Off: r.Off, End: r.End, Val: r.Val,
	}
	l.Text, l.Cut = o.Text(i, maxPreview)
	if r.Field == nil {
		l.Name, l.Kind = r.Name, r.Kind.String()
		if r.Element {
			l.Name = strconv.Itoa(int(r.Index))
		}
		return l
	}
	f := *r.Field
	f.Fields, f.Value, f.Cut = nil, nil, nil
	l.Field = &f
	return l
}

// layer returns the layer that the parameter layer names.
func (q *request) layer(o *outline.Outline) (int32, error) {
	n, err := q.number("layer", 0)
	if err != nil {
		return 0, err
	}
	if n >= int64(len(o.Layers)) {
		return 0, notFound("there is no layer %d", n)
	}
	return int32(n), nil
}

// answerBytes returns a window of the bytes of a layer with the rows that they belong to. With
// the parameter raw, the bytes are those of the frame before decompression.
func answerBytes(ctx context.Context, q *request) (any, error) {
	from, to, err := q.window(maxBytesSent)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		if q.query.Get("raw") != "" {
			from, to = min(from, len(f.Raw)), min(to, len(f.Raw))
			return map[string]any{"v": 1, "total": len(f.Raw), "data": f.Raw[from:to], "spans": []outline.Span{}}, nil
		}
		o := d.outline(f)
		layer, err := q.layer(o)
		if err != nil {
			return nil, err
		}
		data := o.Layers[layer].Data
		from, to = min(from, len(data)), min(to, len(data))
		spans := o.Spans(layer, from, to)
		if spans == nil {
			spans = []outline.Span{}
		}
		return map[string]any{"v": 1, "total": len(data), "data": data[from:to], "spans": spans}, nil
	})
}

// textRows returns where the rows of a text begin: behind line ends, and where a line is longer
// than textColumns.
func textRows(data []byte) []int {
	rows := []int{0}
	start := 0
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] == '\n' && i+1 < len(data):
			start = i + 1
			rows = append(rows, start)
		case i-start >= textColumns && utf8.RuneStart(data[i]):
			start = i
			rows = append(rows, start)
		}
	}
	return rows
}

// A textRow is a row of text, divided by the rows of the tree.
type textRow struct {
	Off   int         `json:"off"`
	Parts []*textPart `json:"parts"`
}

// A textPart is consecutive text of one row of the tree; of none if Row is -1.
type textPart struct {
	Text  string        `json:"text"`
	Row   int32         `json:"row"`
	Class outline.Class `json:"class,omitempty"`
}

// answerText returns a window of the rows of a layer as text.
func answerText(ctx context.Context, q *request) (any, error) {
	from, to, err := q.window(maxTextRows)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		layer, err := q.layer(o)
		if err != nil {
			return nil, err
		}
		data := o.Layers[layer].Data
		starts := textRows(data)
		list := []*textRow{}
		for i := min(from, len(starts)); i < min(to, len(starts)); i++ {
			end := len(data)
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			list = append(list, textOf(o, layer, starts[i], end))
		}
		answer := map[string]any{"v": 1, "total": len(starts), "rows": list}
		if q.query.Has("off") {
			off, err := q.number("off", 0)
			if err != nil {
				return nil, err
			}
			at := 0
			for at+1 < len(starts) && int64(starts[at+1]) <= off {
				at++
			}
			answer["position"] = at
		}
		return answer, nil
	})
}

// textOf divides the bytes of a row of text.
func textOf(o *outline.Outline, layer int32, from, to int) *textRow {
	data := o.Layers[layer].Data
	t := &textRow{Off: from, Parts: []*textPart{}}
	add := func(from, to int, row int32, class outline.Class) {
		if from < to {
			t.Parts = append(t.Parts, &textPart{strings.ToValidUTF8(string(data[from:to]), "\uFFFD"), row, class})
		}
	}
	for _, s := range o.Spans(layer, from, to) {
		add(from, s.From, -1, "")
		add(s.From, s.To, s.Row, s.Class)
		from = s.To
	}
	add(from, to, -1, "")
	return t
}

// answerRowAt returns the row that has a byte of a layer; -1 for none.
func answerRowAt(ctx context.Context, q *request) (any, error) {
	off, err := q.number("off", 0)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		layer, err := q.layer(o)
		if err != nil {
			return nil, err
		}
		row := o.At(layer, int(min(off, int64(len(o.Layers[layer].Data)))))
		return map[string]any{"v": 1, "row": row}, nil
	})
}

// answerValue returns the whole value of a row, up to maxValue bytes.
func answerValue(ctx context.Context, q *request) (any, error) {
	row, err := q.number("row", 0)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		if row >= int64(len(o.Rows)) {
			return nil, notFound("there is no row %d", row)
		}
		r := &o.Rows[row]
		data := o.Layers[r.Layer].Data[r.Val:r.End]
		if q.query.Get("download") != "" {
			return &download{downloadName(d, f) + "-" + safeName(o.FullPath(int32(row))) + ".bin", data}, nil
		}
		text, cut := o.Text(int32(row), maxValue)
		return map[string]any{"v": 1, "text": text, "cut": cut, "len": len(data)}, nil
	})
}
