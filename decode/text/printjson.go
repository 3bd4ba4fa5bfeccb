package text

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// JSON prints the document as JSON that ParseJSON parses: one object with "v", "in" (the encoding of the input),
// "as", and "fields", "frames", "messages" (delimited ones) or "text". The decoded content of a field's value is
// its "inner". If "inner" has a checksum and is edited, ParseJSON encodes the value from it.
//
// Limits: the JSON is written while it is produced, like Text.
func (d *Document) JSON(w io.Writer) error {
	p := &jsonPrinter{w: bufio.NewWriterSize(w, 4<<10), o: d.o}
	p.w.WriteString(`{"v":1`)
	words, err := d.source.words()
	if err != nil {
		return err
	}
	if words != nil {
		p.w.WriteString(`,"in":`)
		p.encode(strings.Join(words, " "))
	}

	// The structure, then the content.
	p.w.WriteString(`,"as":"` + d.As + `"`)
	// Lists are written element by element, so only one element is in memory.
	switch d.As {
	case "frames":
		p.w.WriteString(`,"frames":[`)
		sep := "\n"
		err = d.pieces(func(f envelopePiece) error {
			p.w.WriteString(sep)
			sep = ",\n"
			p.piece(f)
			return p.err
		})
		p.w.WriteString("\n]")
	case "delimited":
		p.w.WriteString(`,"messages":[`)
		sep := "\n"
		err = delimited(d.Data, func(m delimitedPiece) error {
			p.w.WriteString(sep)
			sep = ",\n"
			p.delimitedPiece(m)
			return p.err
		})
		p.w.WriteString("\n]")
	default:
		p.onWritten = d.reportProgress
		p.content(d.Data, d.As == "text")
	}
	p.w.WriteString("}\n")
	// Errors of the document come first, then those of encoding, then those of w.
	if err != nil {
		return err
	}
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// A jsonPrinter prints JSON. Errors of w appear when it is flushed.
type jsonPrinter struct {
	// w is the output.
	w *bufio.Writer

	// o are the options of the document, such as limits and known types.
	o Options

	// t is the parsed message that is being printed.
	t wire.Tree

	// r infers the types of the fields of t.
	r *kind.Reader

	// buf is a reused buffer for JSON encoding.
	buf bytes.Buffer

	// err is the first error of encoding; nil if there was none.
	err error

	// line is reused memory for the JSON text of the current field.
	line []byte

	// others is reused memory for the less likely types of the current field.
	others []field.Alternative

	// base is the offset of t's data in the whole message.
	base int

	// find detects encoded data inside the values of fields, such as base64.
	find nested.Finder

	// deep is the nesting depth of encoded data inside encoded data; 0 for the document itself.
	deep int

	// onWritten, if not nil, is called with the offset up to which the message has been printed.
	onWritten func(off int)
}

// encode prints v as JSON.
func (p *jsonPrinter) encode(v any) {
	p.w.Write(p.marshal(v))
}

// marshal is json.Marshal without escapes for HTML. The result is valid until the next call.
func (p *jsonPrinter) marshal(v any) []byte {
	p.buf.Reset()
	enc := json.NewEncoder(&p.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("text: %w", err)
		}
		return nil
	}
	return bytes.TrimSuffix(p.buf.Bytes(), []byte("\n"))
}

// content prints data as a JSON member: if isText is true, "text" or, for invalid UTF-8, "bytes"; otherwise
// "fields".
func (p *jsonPrinter) content(data []byte, isText bool) {
	if isText {
		if utf8.Valid(data) {
			p.w.WriteString(`,"text":`)
			p.encode(string(data))
			return
		}
		p.w.WriteString(`,"bytes":`)
		p.encode(data)
		return
	}
	p.w.WriteString(`,"fields":[`)
	p.segments(data, p.o, 0)
	p.w.WriteString("]")
}

// segments prints the fields in data in segments, i.e. runs of whole fields of limited size that are parsed at
// once. off is the offset of data in the message.
func (p *jsonPrinter) segments(data []byte, o Options, off int) {
	for sep := "\n"; len(data) > 0; sep = ",\n" {
		part := segmentOrLargeField(data, o.segmentLen)
		p.w.WriteString(sep)
		if f, ok := largeMessage(part, o); ok {
			p.large(f, o, off)
		} else {
			p.t.Reset(part, o.Wire)
			p.r, p.base = o.reader(&p.t, p.r), off
			p.fields(0, o.Type, ",\n")
			if p.onWritten != nil {
				p.onWritten(off + len(part))
			}
		}
		data = data[len(part):]
		off += len(part)
	}
}

// piece prints one envelope as JSON.
func (p *jsonPrinter) piece(f envelopePiece) {
	if !f.framed {
		p.w.WriteString(`{"rest":`)
		p.encode(f.raw)
		p.w.WriteString(`}`)
		return
	}
	fmt.Fprintf(p.w, `{"flags":%d`, f.flags)
	if uint64(f.length) != uint64(len(f.raw)) {
		fmt.Fprintf(p.w, `,"len":%d`, f.length)
	}
	if f.encoding != "" {
		p.w.WriteString(`,"encoding":`)
		p.encode(f.encoding)
		if !f.exact {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(p.w, `,"of":"%s","raw":`, hex.EncodeToString(sum[:16]))
			p.encode(f.raw)
		}
	}

	// An unknown compression leaves bytes.
	switch {
	case f.flags&1 != 0 && f.encoding == "":
		p.w.WriteString(`,"bytes":`)
		p.encode(f.data)
	default:
		p.content(f.data, f.flags&^0x01 != 0 && isPlain(f.data) || shapeOf(f.data, p.o, &p.t) == "text")
	}
	p.w.WriteString("}")
}

// fields prints the children of node i as JSON. sep is printed between them.
func (p *jsonPrinter) fields(i int32, md protoreflect.MessageDescriptor, sep string) {
	first := true
	for c := range p.t.Children(i) {
		if !first {
			p.w.WriteString(sep)
		}
		first = false
		p.field(c, md)
	}
}

// field prints one node. Its fields are printed one by one, not collected first.
func (p *jsonPrinter) field(c int32, md protoreflect.MessageDescriptor) {
	n := p.t.Node(c)
	f := field.Field{N: n.Number, Wire: n.Type.String(), Off: p.base + n.Off, Len: n.End - n.Off}
	var fd protoreflect.FieldDescriptor
	if n.Type != wire.Garbage {
		if fd = fieldOf(md, n.Number); fd != nil {
			f.Name = string(fd.Name())
		}

		// A tag that is longer than necessary is noted, since a canonical encoder would shorten it.
		f.LongTag = n.TagEnd - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type))
	}
	if !n.Sound() {
		f.Error = wire.ErrorText(p.t.Fault(n), p.base)
	}
	is, value := p.setReading(&f, c, fd)

	p.line = f.AppendHead(p.line[:0])

	// AppendHead left the object open: add the fields, or the value.
	if n.Type == wire.StartGroup || n.Type == wire.Len && is == wire.KindMessage {
		p.w.Write(append(p.line, `,"fields":[`...))
		p.fields(c, messageOf(fd), ",")
		p.w.WriteString("]}")
		return
	}
	p.line = value.AppendJSON(append(p.line, `,"value":`...))
	p.w.Write(p.line)

	// Only texts and bytes can contain another document.
	if is == wire.KindString || is == wire.KindBytes {
		if in, ok := p.inside(p.t.Payload(c)); ok {
			p.w.WriteString(`,"inner":`)
			p.w.Write(in)
		}
	}
	p.w.WriteByte('}')
}

// setReading decides as which type node c is decoded, sets that in f, and returns the kind and the value. A message
// or a group has no value. fd is the field's declaration or nil.
func (p *jsonPrinter) setReading(f *field.Field, c int32, fd protoreflect.FieldDescriptor) (is wire.Kind, value field.Exact) {
	n := p.t.Node(c)
	chosen, mismatch := p.r.Chosen(c)
	is, typ, prob := p.r.Best(c)

	// A varint is written as int64, which preserves all bits. If another type is likelier, the remark has the
	// number of that type.
	var remark kind.Remark
	if n.Type == wire.Varint {
		if changesNumber(typ) {
			remark = p.r.Remark(c, wire.KindVarint, typ)
		}
		if is, prob = wire.KindVarint, 1; !chosen {
			typ = "int64"
		}
	}
	if prob < 1 {
		f.P = math.Round(prob*1e4) / 1e4
	}
	ambiguous := chosen || prob < certain

	switch n.Type {
	case wire.I32, wire.I64:
		if !chosen {
			typ = fixedType(n.Type, typ, fd)
		}
	case wire.Len:
		if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
			is, typ, f.P, ambiguous = k, t, 0, false
		}
	}
	f.Kind, f.Type, f.Chosen = string(is), typ, chosen
	if n.Type == wire.Len || is == wire.KindMessage {
		remark = p.r.Remark(c, is, typ)
	}
	f.Form, f.Shape, f.ShapeP, f.Note = remark.Form, remark.Shape, remark.P, remark.Note
	if ambiguous {
		f.Alternatives = p.alternatives(c)
	}

	// The first of these errors is printed, the most severe one first.
	switch {
	case chosen, f.Error != "":
	case mismatch != nil:
		f.Error = mismatch.Error()
	case fd != nil && contradicts(&p.t, c, fd):
		f.Error = "the schema declares " + declaration(fd)
	}
	return is, p.value(f, c, is, typ)
}

// value returns the value of node c, decoded as the given kind and type. It also sets in f the numbers of
// superfluous bytes of varints, and whether a group is open.
func (p *jsonPrinter) value(f *field.Field, c int32, is wire.Kind, typ string) field.Exact {
	n := p.t.Node(c)
	switch n.Type {
	case wire.Varint:
		v := p.t.Uint(c)
		f.LongValue = n.End - n.Val - wire.SizeVarint(v)
		return field.Exact{Kind: wire.KindVarint, Type: typ, Bits: v}
	case wire.I32, wire.I64:
		return field.Exact{Kind: wire.KindFixed64, Type: typ, Bits: p.t.Uint(c)}
	case wire.StartGroup:
		if f.Open = p.t.IsOpen(n); !f.Open {
			f.LongEnd = n.End - p.t.EndTag(c) - wire.SizeVarint(n.Number<<3|uint64(wire.EndGroup))
		}
		return field.Exact{}
	case wire.Len:
		f.LongLen = n.Val - n.TagEnd - wire.SizeVarint(uint64(n.End-n.Val))
		return field.Exact{Kind: is, Type: typ, Data: p.t.Payload(c)}
	}
	return field.Exact{Kind: wire.KindBytes, Data: p.t.Payload(c)}
}

// alternatives returns the possible types of node c except the most probable one. The result is valid until the
// next call.
func (p *jsonPrinter) alternatives(c int32) []field.Alternative {
	p.others = p.others[:0]
	for _, r := range p.r.Types(c)[1:] {
		p.others = append(p.others, field.Alternative{Kind: string(r.Kind), Type: r.Type, P: math.Round(r.P*1e4) / 1e4})
	}
	return p.others
}

// inside returns the decoded content of an encoded payload as a JSON object. ok is false if the payload is not
// encoded data.
func (p *jsonPrinter) inside(data []byte) ([]byte, bool) {
	if p.deep >= maxInside {
		return nil, false
	}
	c, ok := p.find.Find(data)
	if !ok {
		return nil, false
	}
	var out bytes.Buffer
	s := &jsonPrinter{w: bufio.NewWriter(&out), o: Options{segmentLen: defaultSegmentLen, MaxInflated: nested.MaxInflated}, find: p.find, deep: p.deep + 1}
	s.w.WriteString(`{"form":"` + string(c.Form) + `"`)
	if c.Encoding != "" {
		s.w.WriteString(`,"encoding":"` + c.Encoding + `"`)
	}

	// Content without layers and a checksum is for reading only.
	if layers, check, ok := layersOf(c, data); ok {
		s.w.WriteString(`,"layers":`)
		s.encode(append([]nested.Layer{}, layers...))
		s.w.WriteString(`,"check":"` + check + `"`)
	}

	// Print the content by its kind.
	switch c.Form {
	case nested.Message:
		s.content(c.Data, false)
	case nested.Frames:
		s.w.WriteString(`,"frames":[`)
		d := Document{Data: c.Data, o: s.o}
		sep := ""
		// Errors of the function are in s.err.
		_ = d.pieces(func(f envelopePiece) error {
			s.w.WriteString(sep)
			sep = ","
			s.piece(f)
			return s.err
		})
		s.w.WriteString("]")
	case nested.JSON:
		s.w.WriteString(`,"value":`)
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Data); err != nil {
			return nil, false
		}
		s.w.Write(compact.Bytes())
	default:
		s.content(c.Data, isPlain(c.Data))
	}
	s.w.WriteString("}")
	p.find = s.find
	if s.err != nil || s.w.Flush() != nil {
		return nil, false
	}
	return out.Bytes(), true
}

// delimitedPiece prints one length-delimited message as JSON.
func (p *jsonPrinter) delimitedPiece(m delimitedPiece) {
	if !m.whole {
		p.w.WriteString(`{"rest":`)
		p.encode(m.data)
		p.w.WriteString("}")
		return
	}
	fmt.Fprintf(p.w, `{"len":%d`, len(m.data))
	if m.long > 0 {
		fmt.Fprintf(p.w, `,"long_len":%d`, m.long)
	}
	p.content(m.data, false)
	p.w.WriteString("}")
}

// fixedType returns the type in which a fixed-size value is printed if no user chose one: float, double, fixed32 or
// fixed64. typ is its most probable type, and fd its declaration or nil.
func fixedType(t wire.Type, typ string, fd protoreflect.FieldDescriptor) string {
	float := typ == "float" || typ == "double" || isFloat(fd)
	switch {
	case t == wire.I32 && float:
		return "float"
	case t == wire.I32:
		return "fixed32"
	case float:
		return "double"
	}
	return "fixed64"
}
