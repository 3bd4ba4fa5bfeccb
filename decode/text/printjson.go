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

// JSON writes the document as JSON that ParseJSON reads: one object with "v",
// "in" (how the input was written), "as", and "fields", "frames", "messages"
// (delimited ones) or "text". What a field's value holds in another form is its
// "inner"; where that has a check, and was edited, the value is made of it.
//
// Limits: it is written as it is made, as Text is.
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
	p.w.WriteString(`,"as":"` + d.As + `"`)
	switch d.As {
	case "frames":
		p.w.WriteString(`,"frames":[`)
		sep := "\n"
		err = d.pieces(func(f piece) error {
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
		p.passed = d.passed
		p.content(d.Data, d.As == "text")
	}
	p.w.WriteString("}\n")
	if err != nil {
		return err
	}
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

type jsonPrinter struct {
	w   *bufio.Writer
	o   Options
	t   wire.Tree
	r   *kind.Reader
	buf bytes.Buffer
	err error

	// line and others are memory for the field that is being written.
	line   []byte
	others []field.Alternative

	base int // offset of the tree's bytes in the message

	find nested.Finder
	deep int

	passed func(off int)
}

// encode writes v as JSON.
func (p *jsonPrinter) encode(v any) {
	p.w.Write(p.marshal(v))
}

// marshal is json.Marshal without escapes that only HTML needs. Its result is
// good until the next call.
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

// content writes the member that holds data: text, fields, or bytes.
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

// segments writes data, whose first byte is at offset off, as fields.
func (p *jsonPrinter) segments(data []byte, o Options, off int) {
	for sep := "\n"; len(data) > 0; sep = ",\n" {
		part := stretch(data, o.segmentLen)
		p.w.WriteString(sep)
		if f, ok := largeMessage(part, o); ok {
			p.large(f, o, off)
		} else {
			p.t.Reset(part, o.Wire)
			p.r, p.base = o.reader(&p.t), off
			p.fields(0, o.Type, ",\n")
			if p.passed != nil {
				p.passed(off + len(part))
			}
		}
		data = data[len(part):]
		off += len(part)
	}
}

func (p *jsonPrinter) piece(f piece) {
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
	switch {
	case f.flags&1 != 0 && f.encoding == "":
		p.w.WriteString(`,"bytes":`)
		p.encode(f.data)
	default:
		p.content(f.data, f.flags&^0x01 != 0 && isPlain(f.data) || shapeOf(f.data, p.o, &p.t) == "text")
	}
	p.w.WriteString("}")
}

// fields writes the children of node i, with sep between them.
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

// field writes one node; its fields are written one by one, not gathered.
func (p *jsonPrinter) field(c int32, md protoreflect.MessageDescriptor) {
	n := p.t.Node(c)
	f := field.Field{N: n.Number, Wire: n.Type.String(), Off: p.base + n.Off, Len: n.End - n.Off}
	var fd protoreflect.FieldDescriptor
	if n.Type != wire.Garbage {
		if fd = fieldOf(md, n.Number); fd != nil {
			f.Name = string(fd.Name())
		}
		f.LongTag = n.Tag - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type))
	}
	if n.Err != nil {
		f.Error = wire.ErrorText(n.Err, p.base)
	}
	is, value := p.judge(&f, c, fd)

	p.line = f.AppendHead(p.line[:0])
	if n.Type == wire.StartGroup || n.Type == wire.Len && is == wire.KindMessage {
		p.w.Write(append(p.line, `,"fields":[`...))
		p.fields(c, messageOf(fd), ",")
		p.w.WriteString("]}")
		return
	}
	p.line = value.AppendJSON(append(p.line, `,"value":`...))
	p.w.Write(p.line)
	if is == wire.KindString || is == wire.KindBytes {
		if in, ok := p.inside(p.t.Payload(c)); ok {
			p.w.WriteString(`,"inner":`)
			p.w.Write(in)
		}
	}
	p.w.WriteByte('}')
}

// judge sets in f how node c is read, and returns that kind and the value. A message
// or a group has no value.
func (p *jsonPrinter) judge(f *field.Field, c int32, fd protoreflect.FieldDescriptor) (is wire.Kind, value field.Exact) {
	n := p.t.Node(c)
	chosen, unfit := p.r.Chosen(c)
	is, typ, prob := p.r.Best(c)

	// A varint is written as int64, which has all its bits, whatever it may be; the
	// remark has the number that a better type makes of it.
	var remark kind.Remark
	if n.Type == wire.Varint {
		if telling(typ) {
			remark = p.r.Remark(c, wire.KindVarint, typ)
		}
		if is, prob = wire.KindVarint, 1; !chosen {
			typ = "int64"
		}
	}
	if prob < 1 {
		f.P = math.Round(prob*1e4) / 1e4
	}
	doubt := chosen || prob < surely

	switch n.Type {
	case wire.I32, wire.I64:
		if !chosen {
			typ = fixedType(n.Type, typ, fd)
		}
	case wire.Len:
		if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
			is, typ, f.P, doubt = k, t, 0, false
		}
	}
	f.Kind, f.Type, f.Chosen = string(is), typ, chosen
	if n.Type == wire.Len || is == wire.KindMessage {
		remark = p.r.Remark(c, is, typ)
	}
	f.Form, f.Shape, f.ShapeP, f.Note = remark.Form, remark.Shape, remark.P, remark.Note
	if doubt {
		f.Alternatives = p.alternatives(c)
	}

	// What contradicts the reading is an error, unless something worse is wrong.
	switch {
	case chosen, f.Error != "":
	case unfit != nil:
		f.Error = unfit.Error()
	case fd != nil && contradicts(&p.t, c, fd):
		f.Error = "the schema declares " + declaration(fd)
	}
	return is, p.value(f, c, is, typ)
}

// value is the value of node c. How much longer than need be it is, and its length,
// and the end of a group, are set in f.
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
		if f.Open = wire.IsOpen(n); !f.Open {
			f.LongEnd = n.End - p.t.EndTag(c) - wire.SizeVarint(n.Number<<3|uint64(wire.EndGroup))
		}
		return field.Exact{}
	case wire.Len:
		f.LongLen = n.Val - n.Tag - wire.SizeVarint(uint64(n.End-n.Val))
		return field.Exact{Kind: is, Type: typ, Data: p.t.Payload(c)}
	}
	return field.Exact{Kind: wire.KindBytes, Data: p.t.Payload(c)}
}

// alternatives are the readings of node c behind the likeliest. They are good until
// the next call.
func (p *jsonPrinter) alternatives(c int32) []field.Alternative {
	p.others = p.others[:0]
	for _, r := range p.r.Readings(c)[1:] {
		p.others = append(p.others, field.Alternative{Kind: string(r.Kind), Type: r.Type, P: math.Round(r.P*1e4) / 1e4})
	}
	return p.others
}

// inside is what a payload holds in another form, as a JSON object.
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
	if layers, check, ok := again(c, data); ok {
		s.w.WriteString(`,"layers":`)
		s.encode(append([]nested.Layer{}, layers...))
		s.w.WriteString(`,"check":"` + check + `"`)
	}
	switch c.Form {
	case nested.Message:
		s.content(c.Data, false)
	case nested.Frames:
		s.w.WriteString(`,"frames":[`)
		d := Document{Data: c.Data, o: s.o}
		sep := ""
		_ = d.pieces(func(f piece) error { // its errors are s.err
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

// fixedType is the type by which an unchosen fixed value is written, whose likeliest
// type is typ.
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
