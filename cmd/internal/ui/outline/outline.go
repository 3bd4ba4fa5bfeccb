// Package outline turns a decoded message into numbered rows, so that a page can show any
// part of a large tree without having all of it.
//
// Fields or JSON go in through Message and JSON. An Outline comes out: its rows are the
// nodes of the tree in the order of their bytes, each with its depth and its spans (key,
// length, value). What a value contains in encoded form, such as gzip, base64 or JSON in a
// string, is a Layer: it has bytes of its own, and its rows stand below the row of the
// value.
//
//	o := outline.Message(data, view.Fields(tree))
//	visible := o.Visible(closed)
//	for _, i := range visible.Rows(0, 50) {
//		fmt.Println(o.Path(i), o.Rows[i].Off)
//	}
//
// Spans divides a range of a layer's bytes by the rows that they belong to, and At finds
// the row of a byte. Package ui serves both to the page.
package outline

import (
	"encoding/json"
	"strconv"
	"strings"

	"unwire/decode"
	"unwire/decode/field"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/nested"
)

const (
	// maxRows bounds the rows of an outline.
	maxRows = 1 << 20

	// maxLayers bounds the layers of an outline, and maxNesting how many of them stand inside each other.
	maxLayers, maxNesting = 1000, 4

	// leastLayer is the size in bytes of the smallest value that is searched for a layer.
	leastLayer = 8
)

// An Outline is a message as a list of rows.
type Outline struct {
	// Rows are the nodes of the message's tree, in the order of their bytes. A parent precedes its
	// children.
	Rows []Row

	// Layers are the byte sequences that rows refer to. The first is the message itself; others are
	// decoded from values in it.
	Layers []Layer

	// Cut means that rows were left out because there are more than an outline can have.
	Cut bool

	// finder finds encoded data in values.
	finder nested.Finder
}

// A Row is a node of the tree: a field of a message, or a value in JSON.
type Row struct {
	// Off is the offset of the node's first byte in its layer. The bytes [Off,Tag) are the key.
	Off int

	// Tag is the offset after the key. The bytes [Tag,Val) are the length, or the colon in JSON.
	Tag int

	// Val is the offset of the value. The bytes [Val,End) are the value.
	Val int

	// End is the offset after the node's last byte.
	End int

	// Layer is the number of the layer that has the node's bytes.
	Layer int32

	// Parent is the row of the enclosing node, or -1.
	Parent int32

	// Last is the last row inside the node; the node's own row if there are none.
	Last int32

	// Index is the position among siblings with the same field number, or in a JSON array; -1 if the field
	// has no such siblings or the value is not in an array.
	Index int32

	// Opens is the number of the layer that the value contains in encoded form; 0 for none.
	Opens int32

	// Depth is the number of nodes that enclose this one.
	Depth int32

	// Field is the field of a message; nil for JSON.
	Field *field.Field

	// Name is the name of a JSON member; "" for other nodes.
	Name string

	// Element means that the node is an element of a JSON array.
	Element bool

	// Kind is the kind of a JSON value.
	Kind jsontree.Kind
}

// A Layer is a byte sequence that rows refer to: the message, or what a value in it contains in encoded
// form.
type Layer struct {
	// Data are the decoded bytes.
	Data []byte

	// Encoding is how the value encodes the bytes, such as "base64+gzip"; "" for the message, and for a
	// value that has the bytes as they are.
	Encoding string

	// Form is the form of the bytes: message, json, frames or bytes.
	Form string

	// Row is the row whose value contains the layer; -1 for the message.
	Row int32
}

// Message returns the outline of a message with the bytes data, which fields are decoded from.
func Message(data []byte, fields []*field.Field) *Outline {
	o := &Outline{Layers: []Layer{{Data: data, Form: string(nested.Message), Row: -1}}}
	o.addFields(fields, 0, -1, 0, 0)
	return o
}

// JSON returns the outline of a JSON text. If data is not JSON, the outline has no rows.
func JSON(data []byte) *Outline {
	o := &Outline{Layers: []Layer{{Data: data, Form: string(nested.Bytes), Row: -1}}}
	if v, err := jsontree.Parse(data); err == nil {
		o.Layers[0].Form = string(nested.JSON)
		o.addJSON(v, 0, -1, 0, -1, 0)
	}
	return o
}

// addFields adds rows for the fields of one message, and for what is inside them. nesting is the number
// of layers that enclose them, without the message itself.
func (o *Outline) addFields(fields []*field.Field, layer, parent, depth int32, nesting int) {
	counts := map[uint64]int32{}
	if len(fields) > 1 {
		for _, f := range fields {
			counts[f.N]++
		}
	}
	next := map[uint64]int32{}
	for _, f := range fields {
		if len(o.Rows) >= maxRows {
			o.Cut = true
			return
		}
		r := Row{Off: f.Off, Val: f.Val, End: f.Off + f.Len, Layer: layer, Parent: parent, Depth: depth, Index: -1, Field: f}
		r.Tag = tagEnd(o.Layers[layer].Data, f)
		if counts[f.N] > 1 {
			r.Index = next[f.N]
			next[f.N]++
		}
		i := int32(len(o.Rows))
		o.Rows = append(o.Rows, r)
		if len(f.Fields) > 0 {
			o.addFields(f.Fields, layer, i, depth+1, nesting)
		} else if f.Wire == "len" && (f.Kind == "string" || f.Kind == "bytes") {
			o.openValue(i, o.Layers[layer].Data[r.Val:r.End], nesting)
		}
		o.Rows[i].Last = int32(len(o.Rows)) - 1
	}
}

// tagEnd returns the offset after the tag of a field.
func tagEnd(data []byte, f *field.Field) int {
	if f.Wire == "garbage" {
		return f.Off
	}
	i := f.Off
	for i < f.Val && i < len(data) && data[i] >= 0x80 {
		i++
	}
	return min(i+1, f.Val)
}

// addJSON adds rows for a JSON value and for the values inside it. An object or array that is the whole
// text gets no row of its own.
func (o *Outline) addJSON(v jsontree.Value, layer, parent, depth, index int32, nesting int) {
	if len(o.Rows) >= maxRows {
		o.Cut = true
		return
	}
	off, end := v.Span()
	key, keyEnd := v.NameSpan()
	i := int32(len(o.Rows))
	r := Row{Off: off, Tag: off, Val: off, End: end, Layer: layer, Parent: parent, Depth: depth, Index: index, Kind: v.Kind(), Element: index >= 0}
	if keyEnd > key {
		r.Name, r.Off, r.Tag = v.Name(), key, keyEnd
	}
	container := v.Kind() == jsontree.Object || v.Kind() == jsontree.Array
	whole := container && (parent < 0 || o.Rows[parent].Opens == layer) && keyEnd == key && index < 0
	if whole {
		i, depth = parent, depth-1
	} else {
		o.Rows = append(o.Rows, r)
	}
	n := int32(0)
	for item := range v.Items() {
		k := int32(-1)
		if v.Kind() == jsontree.Array {
			k = n
		}
		o.addJSON(item, layer, i, depth+1, k, nesting)
		n++
	}
	if v.Kind() == jsontree.String {
		o.openValue(i, []byte(v.Text()), nesting)
	}
	if !whole {
		o.Rows[i].Last = int32(len(o.Rows)) - 1
	}
}

// openValue adds a layer and its rows if payload, the value of a row, contains encoded data.
func (o *Outline) openValue(row int32, payload []byte, nesting int) {
	if len(payload) < leastLayer || nesting >= maxNesting || len(o.Layers) >= maxLayers {
		return
	}
	c, ok := o.finder.Find(payload)
	if !ok {
		return
	}
	layer := int32(len(o.Layers))
	o.Layers = append(o.Layers, Layer{Data: c.Data, Encoding: c.Encoding, Form: string(c.Form), Row: row})
	o.Rows[row].Opens = layer
	depth := o.Rows[row].Depth + 1
	switch {
	case c.Form == nested.Message && c.Tree != nil:
		o.addFields(decode.View{}.Fields(c.Tree), layer, row, depth, nesting+1)
	case c.Form == nested.JSON:
		if v, err := jsontree.Parse(c.Data); err == nil {
			o.addJSON(v, layer, row, depth, -1, nesting+1)
		}
	}
}

// Path returns the path of a row (a field, or a value in JSON) in the notation of the command line, such as 3[0].2.
// It begins at the layer that contains the row: the message itself, or the data that was decoded from one of its
// values, for example from base64.
func (o *Outline) Path(i int32) string {
	var steps []string
	for layer := o.Rows[i].Layer; i >= 0 && o.Rows[i].Layer == layer; i = o.Rows[i].Parent {
		steps = append(steps, o.step(i))
	}
	var b strings.Builder
	for k := len(steps) - 1; k >= 0; k-- {
		if b.Len() > 0 && !strings.HasPrefix(steps[k], "[") {
			b.WriteByte('.')
		}
		b.WriteString(steps[k])
	}
	return b.String()
}

// step returns the last step of a row's path.
func (o *Outline) step(i int32) string {
	r := &o.Rows[i]
	if r.Field == nil {
		if r.Element {
			return "[" + strconv.Itoa(int(r.Index)) + "]"
		}
		return fieldpath.Path{fieldpath.Step{Name: r.Name, Index: fieldpath.All}}.String()
	}
	s := strconv.FormatUint(r.Field.N, 10)
	if r.Index >= 0 {
		s += "[" + strconv.Itoa(int(r.Index)) + "]"
	}
	return s
}

// FullPath returns the path of a row from the beginning of the message. It names the encodings of the
// layers between.
func (o *Outline) FullPath(i int32) string {
	path := o.Path(i)
	layer := &o.Layers[o.Rows[i].Layer]
	if layer.Row < 0 {
		return path
	}
	through := o.FullPath(layer.Row)
	for _, name := range strings.Split(layer.Encoding, "+") {
		if name != "" {
			through += "!" + name
		}
	}
	if layer.Form == string(nested.JSON) {
		through += "!json"
	}
	return through + "." + path
}

// Carrier returns the row of the message itself that is row i, or whose value contains it.
func (o *Outline) Carrier(i int32) int32 {
	for o.Rows[i].Layer != 0 {
		i = o.Layers[o.Rows[i].Layer].Row
	}
	return i
}

// Text returns the value of a row as text, limited to about most bytes; cut is whether there is more. It
// returns "" for a row with rows of its own layer inside it.
func (o *Outline) Text(i int32, most int) (text string, cut bool) {
	r := &o.Rows[i]
	if r.Field == nil {
		raw := o.Layers[r.Layer].Data[r.Val:r.End]
		if r.Kind == jsontree.Object || r.Kind == jsontree.Array {
			return "", false
		}
		if len(raw) > most {
			return strings.ToValidUTF8(string(raw[:most]), ""), true
		}
		return string(raw), false
	}
	return fieldText(r.Field, most)
}

// fieldText returns the value of a field as text, limited to about most bytes, and whether there is more.
func fieldText(f *field.Field, most int) (string, bool) {
	switch v := f.Value.(type) {
	case nil:
		return "", false
	case string:
		if f.Kind != "string" {
			return v, false // NaN and the infinities
		}
		cut := len(v) > most
		if cut {
			v = strings.ToValidUTF8(v[:most], "")
		}
		return string(jsontree.Quote(v)), cut
	case []byte:
		const digits = "0123456789abcdef"
		cut := len(v) > most/2
		var b strings.Builder
		for _, c := range v[:min(len(v), most/2)] {
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
		return b.String(), cut
	}
	b, err := json.Marshal(f.Value)
	if err != nil {
		return "", false
	}
	if len(b) > most {
		return string(b[:most]), true
	}
	return string(b), false
}
