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

// frameEndpoints returns the API endpoints about one frame: its tree, bytes and text.
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

// withFrame calls do with the exchange and the frame that a request names, and returns what do returns.
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

// A layerInfo describes a layer of a frame for the page. See outline.Layer.
type layerInfo struct {
	// Row is the number of the row whose value contains the layer; -1 for the message itself.
	Row int32 `json:"row"`

	// Encoding is how the value encodes the layer, such as base64+gzip.
	Encoding string `json:"encoding,omitempty"`

	// Form is the form of the layer's bytes: message, json, frames or bytes.
	Form string `json:"form"`

	// Len is the size of the layer in bytes.
	Len int `json:"len"`

	// Path is the full path of Row; "" for the message itself.
	Path string `json:"path,omitempty"`

	// Lines is the number of rows of the layer as text.
	Lines int `json:"lines"`
}

// answerFrame implements the endpoint frame. It returns a frame without its bytes and its tree, for which
// the page asks in parts, and its layers.
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

// A rowLine is a row of a frame's tree as the page shows it. See outline.Row.
type rowLine struct {
	// Row is the number of the row in the outline.
	Row int32 `json:"row"`

	// Depth is the number of rows that enclose the row.
	Depth int32 `json:"depth"`

	// Parent is the number of the enclosing row, or -1.
	Parent int32 `json:"parent"`

	// Layer is the number of the layer that has the row's bytes.
	Layer int32 `json:"layer"`

	// Path is the path of the row from the beginning of its layer.
	Path string `json:"path"`

	// Full is the path of the row from the beginning of the message.
	Full string `json:"full"`

	// Inside is the number of rows inside the row.
	Inside int32 `json:"inside"`

	// Opens is the number of the layer that the value contains; 0 for none.
	Opens int32 `json:"opens,omitempty"`

	// Off is the offset of the row's first byte in its layer.
	Off int `json:"off"`

	// End is the offset after the row's last byte.
	End int `json:"end"`

	// Val is the offset of the value.
	Val int `json:"val"`

	// Field is the field of a message, without its value and the fields inside it; nil for JSON.
	Field *field.Field `json:"field,omitempty"`

	// Name is the name of a JSON member, or the index of an array element.
	Name string `json:"name,omitempty"`

	// Kind is the kind of a JSON value, such as string.
	Kind string `json:"kind,omitempty"`

	// Text is the beginning of the value as text; "" for a value with rows inside it.
	Text string `json:"text"`

	// Cut means that the value is longer than Text.
	Cut bool `json:"cut,omitempty"`
}

// answerRows implements the endpoint rows. It returns a range of the visible rows of a frame's tree. The
// parameter closed lists the rows that the user has closed; rows inside them are not visible. With the
// parameter row, the answer also has the position of that row.
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

// rows returns the parameter name as a list of row numbers, which are separated by dots.
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

// rowOf returns row i of an outline as the page shows it.
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

// layer returns the number of the layer that the parameter layer names, 0 by default.
func (q *request) layer(o *outline.Outline) (int32, error) {
	n, err := q.number("layer", 0)
	if err != nil {
		return 0, err
	}
	if n >= int64(len(o.Layers)) {
		return 0, notFound("the frame has no layer %d", n)
	}
	return int32(n), nil
}

// answerBytes implements the endpoint bytes. It returns a range of the bytes of a layer, with the rows
// that they belong to. With the parameter raw, the bytes are those of the frame before decompression,
// without rows.
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

// textRows returns the offsets at which the rows of a text begin: after each line end, and where a line
// is longer than textColumns.
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

// A textRow is a row of text, divided into parts by the rows of the tree.
type textRow struct {
	// Off is the offset of the text row in its layer.
	Off int `json:"off"`

	// Parts are the parts, in their order.
	Parts []*textPart `json:"parts"`
}

// A textPart is consecutive text that belongs to one row of the tree.
type textPart struct {
	// Text is the text, as valid UTF-8.
	Text string `json:"text"`

	// Row is the number of the row of the tree; -1 for none.
	Row int32 `json:"row"`

	// Class says whether the text is a key, a length or a value.
	Class outline.Class `json:"class,omitempty"`
}

// answerText implements the endpoint text. It returns a range of the rows of a layer as text. With the
// parameter off, the answer also has the position of the row that contains that offset.
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

// textOf returns the bytes [from,to) of a layer as a row of text.
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

// answerRowAt implements the endpoint at. It returns the number of the innermost row that contains the
// byte at the offset off of a layer; -1 for none.
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

// answerValue implements the endpoint value. It returns the value of a row as text, up to maxValue bytes.
// With the parameter download, it returns the value's bytes as a file.
func answerValue(ctx context.Context, q *request) (any, error) {
	row, err := q.number("row", 0)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		if row >= int64(len(o.Rows)) {
			return nil, notFound("the frame has no row %d", row)
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
