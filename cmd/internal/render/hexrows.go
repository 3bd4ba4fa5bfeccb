package render

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// A bytePart is the role of bytes in a hex dump, which determines their colour: tag, length, text, and so
// on.
type bytePart int

const (
	partHead   bytePart = iota // a tag, or the flags of an envelope
	partLength                 // a length
	partText                   // a value: text
	partNumber                 // a number
	partBytes                  // bytes
	partBad                    // what does not parse
)

// hexOptions are the settings of a hexView. The zero value is the default.
type hexOptions struct {
	// Columns is the number of bytes on a line; 0 means 16.
	Columns int

	// All prints values in full; by default, long values are truncated.
	All bool

	// Indent precedes every line.
	Indent string

	// Inside also prints messages that are encoded inside values: in hex, base64 or compressed.
	Inside bool

	// Paint colours a text by the role of its bytes; nil for no colours.
	Paint func(bytePart, string) string
}

const (
	defaultColumns = 16

	// maxHexLines is the number of lines to which a value is truncated.
	maxHexLines = 4

	// maxInsideIndent is the indentation in columns up to which messages within messages are printed.
	maxInsideIndent = 12
)

// A hexView prints a hex dump with offsets, and next to the bytes the fields that they encode. Control
// characters are escaped.
type hexView struct {
	// w buffers the output.
	w *bufio.Writer

	// o are the options.
	o hexOptions

	// find finds messages that are encoded inside values.
	find nested.Finder
}

// newHexView returns a hexView that prints a hex dump to w.
func newHexView(w io.Writer, o hexOptions) *hexView {
	if o.Columns <= 0 {
		o.Columns = defaultColumns
	}
	if o.Paint == nil {
		o.Paint = func(_ bytePart, s string) string { return s }
	}
	return &hexView{w: bufio.NewWriter(w), o: o}
}

// flush writes the buffered output.
func (v *hexView) flush() error { return v.w.Flush() }

// line prints a line of text without bytes.
func (v *hexView) line(text string) { v.w.WriteString(v.o.Indent + text + "\n") }

// A byteRun is a run of consecutive bytes with the same role.
type byteRun struct {
	// part is the role of the bytes.
	part bytePart

	// data are the bytes.
	data []byte
}

// rows prints consecutive runs of bytes that begin at offset off, with text to the right of the first
// line. Unless All is set, a long run at the end is truncated.
func (v *hexView) rows(off int, runs []byteRun, text string) {
	// Long values are cut, since a dump of megabytes helps nobody; --full prints them.
	total := 0
	for _, r := range runs {
		total += len(r.data)
	}
	most := total
	if !v.o.All && total > maxHexLines*v.o.Columns {
		most = (maxHexLines - 1) * v.o.Columns
	}

	// A row may span several runs, such as the tag, the length and the value of a field.
	at, run, done := 0, 0, 0 // done: bytes of run
	for first := true; first || at < most; first = false {
		v.w.WriteString(v.o.Indent)
		v.w.Write(appendHexOffset(v.w.AvailableBuffer(), off+at, 8))
		v.w.WriteString("  ")
		n := 0
		for n < v.o.Columns && at < most {
			for done == len(runs[run].data) {
				run, done = run+1, 0
			}
			k := min(len(runs[run].data)-done, v.o.Columns-n, most-at)
			if n > 0 {
				v.w.WriteByte(' ')
			}
			v.w.WriteString(v.o.Paint(runs[run].part, hexBytes(runs[run].data[done:done+k])))
			n, at, done = n+k, at+k, done+k
		}
		if first && text != "" {
			for range v.o.Columns - n {
				v.w.WriteString("   ")
			}
			v.w.WriteString("  ")
			v.w.WriteString(text)
		}
		v.w.WriteByte('\n')
	}
	if most < total {
		v.line(fmt.Sprintf("          … %s (--full prints all)", app.Counted(total-most, "more byte")))
	}
}

// hexBytes formats bytes as hex with spaces: `0a 05 68`.
func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 3*len(b))
	for i, c := range b {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// tree prints the fields of a message next to their bytes. by determines types and names; base is the
// offset of the message's first byte.
func (v *hexView) tree(t *wire.Tree, by decode.View, base int) {
	v.fields(t, 0, by.Each(t), base, 0)
}

// fields prints the fields inside the node i of a message's tree, which is nested depth levels deep.
func (v *hexView) fields(t *wire.Tree, i int32, fields iter.Seq[*field.Field], base, depth int) {
	c := t.Node(i).First
	for f := range fields {
		v.field(t, c, f, base, depth)
		c = t.Node(c).Next
	}
}

// field prints one field, the node c of a message's tree, and the fields inside it.
func (v *hexView) field(t *wire.Tree, c int32, f *field.Field, base, depth int) {
	n := t.Node(c)
	if f.Cut != nil {
		v.cut(t.Data[n.Off:n.End], f, base+n.Off, depth)
		return
	}
	part := partOf(n.Type, f)
	text := strings.Repeat("  ", depth) + v.label(f, part)
	runs := []byteRun{{partHead, t.Data[n.Off:n.TagEnd]}, {partLength, t.Data[n.TagEnd:n.Val]}}
	if f.Fields == nil {
		if n.Type == wire.Garbage {
			runs = []byteRun{{partBad, t.Data[n.Off:n.End]}}
		} else {
			runs = append(runs, byteRun{part, t.Data[n.Val:n.End]})
		}
		v.rows(base+n.Off, runs, text)
		if v.o.Inside && (part == partText || part == partBytes) {
			v.inside(t.Payload(c))
		}
		return
	}
	v.rows(base+n.Off, runs, text)
	v.fields(t, c, slices.Values(f.Fields), base, depth+1)
	if end := t.EndTag(c); end < n.End {
		v.rows(base+end, []byteRun{{partHead, t.Data[end:n.End]}}, strings.Repeat("  ", depth)+v.o.Paint(partHead, "end of "+strconv.FormatUint(f.N, 10)))
	}
}

// cut prints the available bytes of a truncated field; off is the offset of its first byte.
func (v *hexView) cut(data []byte, f *field.Field, off, depth int) {
	_, tag := wire.ConsumeVarint(data)
	head := f.Cut.Val - f.Cut.Off
	part := partOf(wire.Len, f.Cut)
	runs := []byteRun{{partHead, data[:tag]}, {partLength, data[tag:head]}}
	text := strings.Repeat("  ", depth) + v.label(f.Cut, part) + "  " + v.o.Paint(partBad, "! "+term.Clean(f.Error))
	if f.Cut.Fields == nil {
		v.rows(off, append(runs, byteRun{part, data[head:]}), text)
		return
	}
	v.rows(off, runs, text)
	v.fields(wire.Parse(data[head:], wire.Options{}), 0, slices.Values(f.Cut.Fields), off+head, depth+1)
}

// inside prints the message that is encoded inside a value, if there is one.
func (v *hexView) inside(data []byte) {
	c, ok := v.find.Find(data)
	if !ok || c.Form != nested.Message {
		return
	}
	sub := &hexView{w: v.w, o: v.o, find: v.find}
	sub.o.Indent += "    "
	sub.o.Inside = len(sub.o.Indent) <= maxInsideIndent
	sub.line(fmt.Sprintf("%s of a message of %d bytes (offsets start at 0):", c.Encoding, len(c.Data)))
	sub.tree(c.Tree, decode.View{}, 0)
	v.find = sub.find
}

// partOf returns the role of a field's value.
func partOf(typ wire.Type, f *field.Field) bytePart {
	switch {
	case typ == wire.Garbage:
		return partBad
	case typ != wire.Len && typ != wire.StartGroup, f.Kind == string(wire.KindPacked):
		return partNumber
	case f.Kind == string(wire.KindString):
		return partText
	}
	return partBytes
}

// label returns the text that is printed to the right of a field's bytes: number, name, type and value.
func (v *hexView) label(f *field.Field, part bytePart) string {
	limit := 60
	if v.o.All {
		limit = -1
	}
	head := "garbage"
	if part != partBad {
		head = strconv.FormatUint(f.N, 10)
		if f.Name != "" {
			head += " " + f.Name
		}
		head += ":"
	}
	value := summary(f, limit)
	if f.Fields == nil && part == partBytes || part == partBad {
		// They are printed to its right.
		value = fmt.Sprintf("%s[%d]", f.Type, f.Off+f.Len-f.Val)
	}
	if f.Fields != nil {
		part = partLength
	}
	s := v.o.Paint(partHead, head) + " " + v.o.Paint(part, value)
	if c := certainty(f); c != "" {
		s += "  " + c
	}
	s += likeness(f)
	if f.Error != "" {
		s += "  " + v.o.Paint(partBad, "! "+term.Clean(f.Error))
	}
	return s
}
