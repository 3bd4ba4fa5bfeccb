package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/nested"
	"unwire/decode/text/memo"
	"unwire/decode/text/output"
	"unwire/decode/wire"
)

const (
	// maxIndent is the maximum indentation in columns. Deeper levels are not indented further.
	maxIndent = 40

	// hexLine is the number of bytes of hex per line.
	hexLine = 64

	// certain is the minimum probability of a type that is printed without its alternatives.
	certain = 0.95

	// directive is the beginning of the comment that describes the encoding of the input.
	directive = "# unwire: "
)

// Text prints the document as text that Parse parses.
//
// Limits: the text is written while it is produced, and only one frame's tree is in memory.
func (d *Document) Text(w io.Writer) error {
	p := &printer{w: output.New(w), plain: d.o.Plain}
	words, err := d.source.words()
	if err != nil {
		return err
	}
	if words != nil {
		p.w.WriteString(directive + strings.Join(words, " ") + "\n")
	}

	// An unreadable compression is noted in the text, because the bytes below are then still
	// compressed.
	if d.source.inflateError != "" {
		p.w.WriteString("# still compressed: " + printable(d.source.inflateError) + "\n")
	}

	// A document that is a message itself is printed in segments.
	switch d.As {
	case "text":
		p.quoted(d.Data, 0)
	case "frames":
		err = d.pieces(func(f envelopePiece) error {
			p.piece(f, d.o)
			return nil
		})
	case "delimited":
		err = delimited(d.Data, func(m delimitedPiece) error {
			p.delimitedPiece(m, d.o)
			return nil
		})
	default:
		p.onWritten = d.reportProgress
		p.message(d.Data, d.o, 0)
	}
	if err != nil {
		return err
	}
	return p.w.Flush()
}

// Format returns t as text. Unlike Text, it prints only this tree, with names of md, which may be nil.
func Format(t *wire.Tree, md protoreflect.MessageDescriptor) string {
	var b strings.Builder
	p := &printer{w: output.New(&b)}
	p.t, p.r = *t, kind.NewReader(t, nil)
	p.fields(0, md, 0)
	p.w.Flush() //nolint:errcheck // a strings.Builder does not fail
	return b.String()
}

// A printer prints text. Errors of w appear when it is flushed.
type printer struct {
	// w is the output.
	w *output.Output

	// t is the parsed message that is being printed.
	t wire.Tree

	// r infers the types of the fields of t; nil if plain is set.
	r *kind.Reader

	// plain is Options.Plain.
	plain bool

	// find detects data that is encoded inside fields.
	find nested.Finder

	// sub is a reused printer for encoded data inside fields.
	sub *printer

	// deep is the nesting depth of encoded data inside encoded data.
	deep int

	// truncations is the number of truncated fields that enclose the current one.
	truncations int

	// base is the offset of t's data in the whole message.
	base int

	// memo has the text of payloads that occurred repeatedly.
	memo memo.Memo

	// offsets is the number of comments with an offset that were printed.
	offsets int

	// onWritten, if not nil, is called with the offset up to which the message has been printed.
	onWritten func(off int)
}

// piece prints one envelope with its flags and its content.
func (p *printer) piece(f envelopePiece, o Options) {
	if !f.framed {
		fmt.Fprintf(p.w, "# the header of a gRPC frame is truncated: it has %d bytes, and %d are there\n", envelope.PrefixLen, len(f.raw))
		p.hex(f.raw, 0)
		return
	}
	// The head: everything that Parse needs to restore the envelope.
	p.w.WriteString("frame 0x")
	p.w.WriteByte(hexDigits[f.flags>>4])
	p.w.WriteByte(hexDigits[f.flags&15])
	p.w.WriteByte(' ')
	if uint64(f.length) != uint64(len(f.raw)) {
		fmt.Fprintf(p.w, "len:%d ", f.length)
	}
	if f.encoding != "" {
		p.w.WriteString(f.encoding + " ")
		// Our compressor yields other bytes, so print the original ones.
		if !f.exact {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(p.w, "of:%s raw:`%s` ", hex.EncodeToString(sum[:16]), hex.EncodeToString(f.raw))
		}
	}

	// Defects are comments, because the printed length already expresses them.
	defects := ""
	if uint64(f.length) > uint64(len(f.raw)) {
		defects = fmt.Sprintf("  # length %d, %d bytes left", f.length, len(f.raw))
	}
	if f.inflateError != "" {
		defects += "  # still compressed: " + printable(f.inflateError)
	}
	if len(f.data) == 0 {
		p.w.WriteString("{}")
		p.w.WriteString(defects)
		p.w.WriteByte('\n')
		return
	}
	p.w.WriteByte('{')
	p.w.WriteString(defects)
	p.w.WriteByte('\n')
	// The payload: JSON, trailers, an unknown compression, or a message.
	switch {
	case f.flags&^0x01 != 0 && isPlain(f.data):
		p.quoted(f.data, 1)
		p.end(f)
	case f.flags&1 != 0 && f.encoding == "":
		// The compression is unknown.
		p.hex(f.data, 1)
	case p.isText(f.data, o):
		p.quoted(f.data, 1)
	default:
		p.message(f.data, o, 1)
	}
	p.w.WriteString("}\n")
}

// isText reports whether the payload of an envelope is text that is not protobuf.
func (p *printer) isText(data []byte, o Options) bool {
	if p.plain {
		return isPlain(data)
	}
	return shapeOf(data, o, &p.t) == "text"
}

// message prints data as the fields of a message.
func (p *printer) message(data []byte, o Options, depth int) { p.segments(data, o, 0, depth) }

// segments prints the fields in data in segments, i.e. runs of whole fields of limited size that are parsed at
// once. off is the offset of data in the message.
func (p *printer) segments(data []byte, o Options, off, depth int) {
	// Types are inferred from all fields of a segment. Without types, the nodes of smaller segments stay in the CPU's cache.
	segmentLen := o.segmentLen
	if p.plain {
		segmentLen = min(segmentLen, plainSegmentLen)
	}
	for len(data) > 0 {
		// Each segment has a tree of its own. Its fields do not depend on the others.
		part := segmentOrLargeField(data, segmentLen)
		if f, ok := largeMessage(part, o); ok {
			p.large(f, o, off, depth)
			data = data[len(part):]
			off += len(part)
			continue
		}
		p.t.Reset(part, o.Wire)
		p.base = off
		if !p.plain {
			p.r = o.reader(&p.t, p.r)
		}
		// Describe the message as a whole only if all of it is in this segment.
		if off == 0 && len(part) == len(data) && o.Type == nil && !p.plain {
			if m := p.r.Remark(0, wire.KindMessage, ""); m.Shape != "" {
				p.indent(depth)
				p.w.WriteString("# looks like " + remarkText(m, false) + "\n")
			}
		}
		p.fields(0, o.Type, depth)
		data = data[len(part):]
		off += len(part)
		if p.onWritten != nil {
			p.onWritten(off)
		}
	}
}

// indent prints the indentation for a nesting depth.
func (p *printer) indent(depth int) {
	p.w.WriteString("                                        "[:min(2*depth, maxIndent)])
}

// fields prints the children of node i, each on one or more lines. md is the type of node i, or nil.
func (p *printer) fields(i int32, md protoreflect.MessageDescriptor, depth int) {
	// contained is the type of the message inside an Any.
	var contained protoreflect.MessageDescriptor
	if !p.plain {
		if name, ok := p.r.AnyType(i); ok {
			contained = known.Message(name)
		}
	}
	for c := range p.t.Children(i) {
		n := p.t.Node(c)
		if n.Type == wire.Garbage {
			p.damaged(c, n, md, depth)
			continue
		}
		fd := fieldOf(md, n.Number)
		if contained != nil && n.Number == anyValue && p.t.IsMessage(c) {
			if chosen, _ := p.chosen(c); !chosen {
				p.anyContent(c, n, contained, depth)
				continue
			}
		}
		p.field(c, n, fd, depth)
	}
}

// anyValue is the number of the field of google.protobuf.Any that contains the message.
const anyValue = 2

// anyContent prints the message in node c, which is the content of a google.protobuf.Any. md is its type.
func (p *printer) anyContent(c int32, n *wire.Node, md protoreflect.MessageDescriptor, depth int) {
	p.indent(depth)
	p.long(n.TagEnd - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type)))
	fmt.Fprintf(p.w, "%d: ", n.Number)
	p.long(n.Val - n.TagEnd - wire.SizeVarint(uint64(n.End-n.Val)))
	fmt.Fprintf(p.w, "{  # %s\n", md.FullName())
	p.fields(c, md, depth+1)
	p.indent(depth)
	p.w.WriteString("}\n")
}

// field prints the field in node c at a nesting depth. fd is its declaration or nil.
func (p *printer) field(c int32, n *wire.Node, fd protoreflect.FieldDescriptor, depth int) {
	p.w.FlushFull()
	p.indent(depth)
	if n.Overlong {
		p.long(n.TagEnd - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type)))
	}
	p.number(n.Number)
	p.w.WriteByte(':')
	// The wire type determines the notation, and the reading how the value appears in it.
	switch n.Type {
	case wire.Varint:
		p.w.WriteByte(' ')
		v := p.t.Uint(c)
		if n.Overlong {
			p.long(n.End - n.Val - wire.SizeVarint(v))
		}
		if text := p.chosenText(c, v, ""); text != "" {
			p.w.WriteString(text)
		} else {
			p.w.AppendInt(int64(v))
		}
		p.remark(c, fd, p.best(c))
	case wire.I32, wire.I64:
		p.w.WriteByte(' ')
		best := p.best(c)
		v := p.t.Uint(c)
		p.w.WriteString(p.chosenText(c, v, fixedText(v, n.Type == wire.I32, strings.HasPrefix(best.typ, "float") || best.typ == "double" || isFloat(fd))))
		p.remark(c, fd, best)
	case wire.StartGroup:
		p.group(c, n, fd, depth)
	case wire.Len:
		p.w.WriteByte(' ')
		if n.Overlong {
			p.long(n.Val - n.TagEnd - wire.SizeVarint(uint64(n.End-n.Val)))
		}
		if fd == nil && !p.plain && p.r.FollowsFromValue(c) {
			p.repeatedPayload(c, depth)
		} else {
			p.payload(c, fd, depth)
		}
	}
}

// number prints an unsigned number.
func (p *printer) number(v uint64) {
	if v < 10 {
		p.w.WriteByte('0' + byte(v))
		return
	}
	p.w.AppendUint(v)
}

// long prints the word long-form for a varint that is extra bytes longer than necessary. It prints nothing if extra
// is 0.
func (p *printer) long(extra int) {
	if extra > 0 {
		fmt.Fprintf(p.w, "long-form:%d ", extra)
	}
}

// group prints the group in node c. If its end tag is missing, it is printed as a tag followed by its fields. fd is
// its declaration or nil.
func (p *printer) group(c int32, n *wire.Node, fd protoreflect.FieldDescriptor, depth int) {
	if p.t.IsOpen(n) {
		p.w.WriteString("SGROUP")
		p.remark(c, fd, p.best(c))
		p.fields(c, messageOf(fd), depth)
		return
	}
	p.w.WriteString(" !{")
	p.remark(c, fd, p.best(c))
	p.fields(c, messageOf(fd), depth+1)
	p.indent(depth)
	p.long(n.End - p.t.EndTag(c) - wire.SizeVarint(n.Number<<3|uint64(wire.EndGroup)))
	p.w.WriteString("}\n")
}

// repeatedPayload prints the value of node c, whose text follows from its bytes, in braces.
func (p *printer) repeatedPayload(c int32, depth int) {
	data := p.t.Payload(c)
	e, repeated := p.memo.Find(data)
	if e != nil && e.Has(data, depth) && p.find.Spend(e.Spent) {
		p.w.Write(e.Text)
		return
	}

	// The text is not remembered if it has offsets, which differ.
	mark, offsets, spent := p.w.Mark(), p.offsets, p.find.Spent()
	p.payload(c, nil, depth)
	if !repeated || p.offsets != offsets || !p.find.Spend(0) {
		return
	}
	if text, ok := p.w.Since(mark); ok {
		e.Set(data, depth, text, p.find.Spent()-spent)
	}
}

// payload prints the value of the length-delimited field in node c, in braces. fd is its declaration or nil.
func (p *printer) payload(c int32, fd protoreflect.FieldDescriptor, depth int) {
	data := p.t.Payload(c)
	if len(data) == 0 {
		p.w.WriteString("{}")
		p.remark(c, fd, p.best(c))
		return
	}

	// Declared types take precedence over inferred ones, unless the bytes contradict them.
	n := p.t.Node(c)
	best := p.best(c)
	kind, typ := best.kind, best.typ
	if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
		kind, typ = k, t
	}
	p.w.WriteByte('{')
	if (kind == wire.KindString || kind == wire.KindBytes) && fd == nil && !p.plain && p.almostMessage(c, data, n, depth) {
		return
	}
	switch kind {
	case wire.KindMessage:
		p.remark(c, fd, best)
		p.fields(c, messageOf(fd), depth+1)
		p.indent(depth)
		p.w.WriteString("}\n")
		return
	case wire.KindString:
		// A text of several lines has one literal per line.
		if lines := bytes.Count(data, []byte("\n")); lines > 1 || lines == 1 && data[len(data)-1] != '\n' {
			p.remark(c, fd, best)
			p.quoted(data, depth+1)
			p.indent(depth)
			p.w.WriteString("}\n")
			p.inside(data, depth)
			return
		}
		p.quote(data)
	case wire.KindPacked:
		p.packed(data, typ)
	default:
		// Long data goes below the field, in lines of hex.
		if len(data) > hexLine {
			p.remark(c, fd, best)
			p.hex(data, depth+1)
			p.indent(depth)
			p.w.WriteString("}\n")
			p.inside(data, depth)
			return
		}
		p.hexLiteral(data)
	}
	p.w.WriteByte('}')
	p.remark(c, fd, best)
	if kind != wire.KindPacked {
		p.inside(data, depth)
	}
}

// quoted prints text as quoted literals, one for each line.
func (p *printer) quoted(data []byte, depth int) {
	for len(data) > 0 {
		k := bytes.IndexByte(data, '\n') + 1
		if k == 0 {
			k = len(data)
		}
		p.indent(depth)
		p.quote(data[:k])
		p.w.WriteByte('\n')
		data = data[k:]
	}
}

// quote prints a string literal. Characters that a terminal does not display are escaped byte by byte.
func (p *printer) quote(data []byte) {
	p.w.WriteByte('"')
	from := 0
	for i := 0; i < len(data); {
		c := data[i]
		// data[from:i] needs no escapes and is written in one go.
		if c < utf8.RuneSelf && c >= ' ' && c != 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		n := 1

		// Valid printable characters beyond ASCII stay readable; all other bytes are escaped.
		if c >= utf8.RuneSelf {
			var r rune
			if r, n = utf8.DecodeRune(data[i:]); n > 1 && strconv.IsPrint(r) {
				i += n
				continue
			}
		}
		p.w.Write(data[from:i])
		switch c {
		case '"', '\\':
			p.w.Write([]byte{'\\', c})
		case '\n':
			p.w.WriteString(`\n`)
		default:
			for _, c := range data[i : i+n] {
				p.w.Write([]byte{'\\', 'x', hexDigits[c>>4], hexDigits[c&15]})
			}
		}
		i += n
		from = i
	}

	p.w.Write(data[from:])
	p.w.WriteByte('"')
}

// hex prints data as lines of hex digits.
func (p *printer) hex(data []byte, depth int) {
	for len(data) > 0 {
		k := min(hexLine, len(data))
		p.indent(depth)
		p.hexLiteral(data[:k])
		p.w.WriteByte('\n')
		data = data[k:]
	}
}

// hexLiteral prints data as one literal of hex digits.
func (p *printer) hexLiteral(data []byte) {
	p.w.WriteByte('`')
	p.w.AppendHex(data)
	p.w.WriteByte('`')
}

// hexDigits are the digits of hexadecimal numbers.
const hexDigits = "0123456789abcdef"

// printable escapes line breaks and other characters that would end a comment.
func printable(s string) string {
	if isUnescaped(s) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// isUnescaped reports whether strconv.Quote escapes no character of s. It may return false for characters outside ASCII.
func isUnescaped(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// isPlain reports whether b is UTF-8 without control characters other than white space.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return utf8.Valid(b)
}

// isFloat reports whether fd declares a floating-point field. fd may be nil.
func isFloat(fd protoreflect.FieldDescriptor) bool {
	return fd != nil && (fd.Kind() == protoreflect.FloatKind || fd.Kind() == protoreflect.DoubleKind)
}

// messageOf returns the type of fd's message, or nil. fd may be nil.
func messageOf(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd == nil {
		return nil
	}
	return fd.Message()
}

// declaration returns the declared type of fd for comments.
func declaration(fd protoreflect.FieldDescriptor) string {
	s := fd.Kind().String()
	switch {
	case fd.IsMap():
		return "map"
	case fd.Message() != nil:
		s = string(fd.Message().FullName())
	case fd.Enum() != nil:
		s = string(fd.Enum().FullName())
	}
	if fd.IsList() {
		return "repeated " + s
	}
	return s
}
