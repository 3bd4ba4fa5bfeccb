package text

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

const (
	maxIndent = 40 // columns; deeper nesting is not indented any further
	hexLine   = 64 // bytes of hex on one line
	surely    = 0.95
	directive = "# unwire: "
)

// Text writes the document as text that Parse reads.
//
// Limits: it is written as it is made, frame by frame; one frame's tree is held.
func (d *Document) Text(w io.Writer) error {
	p := &printer{w: bufio.NewWriterSize(w, 4<<10)}
	words, err := d.source.words()
	if err != nil {
		return err
	}
	if words != nil {
		p.w.WriteString(directive + strings.Join(words, " ") + "\n")
	}
	if d.source.why != "" {
		p.w.WriteString("# still compressed: " + printable(d.source.why) + "\n")
	}
	switch d.As {
	case "text":
		p.quoted(d.Data, 0)
	case "frames":
		err = d.pieces(func(f piece) error {
			p.piece(f, d.o)
			return nil
		})
	case "delimited":
		err = delimited(d.Data, func(m delimitedPiece) error {
			p.delimitedPiece(m, d.o)
			return nil
		})
	default:
		p.passed = d.passed
		p.message(d.Data, d.o, 0)
	}
	if err != nil {
		return err
	}
	return p.w.Flush()
}

// Format returns a message's bytes as text: what Text writes, for one tree.
func Format(t *wire.Tree, md protoreflect.MessageDescriptor) string {
	var b strings.Builder
	p := &printer{w: bufio.NewWriter(&b)}
	p.t, p.r = *t, kind.NewReader(t, nil)
	p.fields(0, md, 0)
	p.w.Flush() //nolint:errcheck // a strings.Builder does not fail
	return b.String()
}

// A printer writes text. What goes wrong with w shows at its Flush.
type printer struct {
	w *bufio.Writer
	t wire.Tree
	r *kind.Reader

	find nested.Finder
	sub  *printer // of what is inside fields
	deep int      // how far inside
	cuts int      // fields around this that are cut off
	base int      // of the tree's bytes in the message that they are told by

	// Told of a message's segments that were written; may be nil.
	passed func(off int)
}

// piece writes an envelope.
func (p *printer) piece(f piece, o Options) {
	if !f.framed {
		fmt.Fprintf(p.w, "# an envelope's head cut off: %d bytes, %d left\n", envelope.PrefixLen, len(f.raw))
		p.hex(f.raw, 0)
		return
	}
	fmt.Fprintf(p.w, "frame %#02x ", uint8(f.flags))
	if uint64(f.length) != uint64(len(f.raw)) {
		fmt.Fprintf(p.w, "len:%d ", f.length)
	}
	if f.encoding != "" {
		p.w.WriteString(f.encoding + " ")
		if !f.exact {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(p.w, "of:%s raw:`%s` ", hex.EncodeToString(sum[:16]), hex.EncodeToString(f.raw))
		}
	}
	cut := ""
	if uint64(f.length) > uint64(len(f.raw)) {
		cut = fmt.Sprintf("  # length %d, %d bytes left", f.length, len(f.raw))
	}
	if f.why != "" {
		cut += "  # still compressed: " + printable(f.why)
	}
	if len(f.data) == 0 {
		p.w.WriteString("{}" + cut + "\n")
		return
	}
	p.w.WriteString("{" + cut + "\n")
	switch {
	case f.flags&^0x01 != 0 && isPlain(f.data):
		p.quoted(f.data, 1)
		p.end(f)
	case f.flags&1 != 0 && f.encoding == "":
		p.hex(f.data, 1) // compressed with we do not know what
	case shapeOf(f.data, o, &p.t) == "text":
		p.quoted(f.data, 1)
	default:
		p.message(f.data, o, 1)
	}
	p.w.WriteString("}\n")
}

// message writes data as fields.
func (p *printer) message(data []byte, o Options, depth int) { p.segments(data, o, 0, depth) }

// segments writes data, whose first byte is at offset off, as fields.
func (p *printer) segments(data []byte, o Options, off, depth int) {
	for len(data) > 0 {
		part := stretch(data, o.segmentLen)
		if f, ok := largeMessage(part, o); ok {
			p.large(f, o, off, depth)
			data = data[len(part):]
			off += len(part)
			continue
		}
		p.t.Reset(part, o.Wire)
		p.r, p.base = o.reader(&p.t), off
		if off == 0 && len(part) == len(data) && o.Type == nil {
			if m := p.r.Remark(0, wire.KindMessage, ""); m.Shape != "" {
				p.indent(depth)
				p.w.WriteString("# looks like " + remarkText(m, false) + "\n")
			}
		}
		p.fields(0, o.Type, depth)
		data = data[len(part):]
		off += len(part)
		if p.passed != nil {
			p.passed(off)
		}
	}
}

func (p *printer) indent(depth int) {
	p.w.WriteString("                                        "[:min(2*depth, maxIndent)])
}

// fields writes the children of node i, a line or more each.
func (p *printer) fields(i int32, md protoreflect.MessageDescriptor, depth int) {
	var held protoreflect.MessageDescriptor
	if name, ok := p.r.AnyType(i); ok {
		held = known.Message(name)
	}
	for c := range p.t.Children(i) {
		n := p.t.Node(c)
		if n.Type == wire.Garbage {
			p.damaged(c, n, md, depth)
			continue
		}
		fd := fieldOf(md, n.Number)
		if held != nil && n.Number == anyValue && p.t.IsMessage(c) {
			if chosen, _ := p.r.Chosen(c); !chosen {
				p.held(c, n, held, depth)
				continue
			}
		}
		p.field(c, n, fd, depth)
	}
}

// anyValue is the field of an Any that holds the message.
const anyValue = 2

// held writes the message that an Any holds.
func (p *printer) held(c int32, n *wire.Node, md protoreflect.MessageDescriptor, depth int) {
	p.indent(depth)
	p.long(n.Tag - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type)))
	fmt.Fprintf(p.w, "%d: ", n.Number)
	p.long(n.Val - n.Tag - wire.SizeVarint(uint64(n.End-n.Val)))
	fmt.Fprintf(p.w, "{  # %s\n", md.FullName())
	p.fields(c, md, depth+1)
	p.indent(depth)
	p.w.WriteString("}\n")
}

// field writes one node.
func (p *printer) field(c int32, n *wire.Node, fd protoreflect.FieldDescriptor, depth int) {
	p.indent(depth)
	p.long(n.Tag - n.Off - wire.SizeVarint(n.Number<<3|uint64(n.Type)))
	p.w.WriteString(strconv.FormatUint(n.Number, 10))
	p.w.WriteByte(':')
	switch n.Type {
	case wire.Varint:
		p.w.WriteByte(' ')
		v := p.t.Uint(c)
		p.long(n.End - n.Val - wire.SizeVarint(v))
		p.w.WriteString(p.chosenText(c, v, strconv.FormatInt(int64(v), 10)))
		p.remark(c, fd)
	case wire.I32, wire.I64:
		p.w.WriteByte(' ')
		_, typ, _ := p.r.Best(c)
		v := p.t.Uint(c)
		p.w.WriteString(p.chosenText(c, v, fixedText(v, n.Type == wire.I32, strings.HasPrefix(typ, "float") || typ == "double" || isFloat(fd))))
		p.remark(c, fd)
	case wire.StartGroup:
		p.group(c, n, fd, depth)
	case wire.Len:
		p.w.WriteByte(' ')
		p.long(n.Val - n.Tag - wire.SizeVarint(uint64(n.End-n.Val)))
		p.payload(c, fd, depth)
	}
}

func (p *printer) long(extra int) {
	if extra > 0 {
		fmt.Fprintf(p.w, "long-form:%d ", extra)
	}
}

// group writes a group; one without its end is a tag with fields behind it.
func (p *printer) group(c int32, n *wire.Node, fd protoreflect.FieldDescriptor, depth int) {
	if wire.IsOpen(n) {
		p.w.WriteString("SGROUP")
		p.remark(c, fd)
		p.fields(c, messageOf(fd), depth)
		return
	}
	p.w.WriteString(" !{")
	p.remark(c, fd)
	p.fields(c, messageOf(fd), depth+1)
	p.indent(depth)
	p.long(n.End - p.t.EndTag(c) - wire.SizeVarint(n.Number<<3|uint64(wire.EndGroup)))
	p.w.WriteString("}\n")
}

// payload writes the value of a Len node in braces.
func (p *printer) payload(c int32, fd protoreflect.FieldDescriptor, depth int) {
	data := p.t.Payload(c)
	if len(data) == 0 {
		p.w.WriteString("{}")
		p.remark(c, fd)
		return
	}
	n := p.t.Node(c)
	kind, typ, _ := p.r.Best(c)
	if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
		kind, typ = k, t
	}
	p.w.WriteByte('{')
	if (kind == wire.KindString || kind == wire.KindBytes) && fd == nil && p.almostMessage(c, data, n, depth) {
		return
	}
	switch kind {
	case wire.KindMessage:
		p.remark(c, fd)
		p.fields(c, messageOf(fd), depth+1)
		p.indent(depth)
		p.w.WriteString("}\n")
		return
	case wire.KindString:
		if lines := bytes.Count(data, []byte("\n")); lines > 1 || lines == 1 && data[len(data)-1] != '\n' {
			p.remark(c, fd)
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
		if len(data) > hexLine {
			p.remark(c, fd)
			p.hex(data, depth+1)
			p.indent(depth)
			p.w.WriteString("}\n")
			p.inside(data, depth)
			return
		}
		p.w.WriteString("`" + hex.EncodeToString(data) + "`")
	}
	p.w.WriteByte('}')
	p.remark(c, fd)
	if kind != wire.KindPacked {
		p.inside(data, depth)
	}
}

// quoted writes text as one literal a line of it.
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

// quote writes a string literal. What a terminal would not show as a character
// is escaped byte by byte.
func (p *printer) quote(data []byte) {
	const digits = "0123456789abcdef"
	p.w.WriteByte('"')
	from := 0
	for i := 0; i < len(data); {
		c := data[i]
		if c < utf8.RuneSelf && c >= ' ' && c != 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		n := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, n = utf8.DecodeRune(data[i:]); n > 1 && unicode.IsPrint(r) {
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
				p.w.Write([]byte{'\\', 'x', digits[c>>4], digits[c&15]})
			}
		}
		i += n
		from = i
	}
	p.w.Write(data[from:])
	p.w.WriteByte('"')
}

// hex writes lines of hex.
func (p *printer) hex(data []byte, depth int) {
	for len(data) > 0 {
		k := min(hexLine, len(data))
		p.indent(depth)
		p.w.WriteString("`" + hex.EncodeToString(data[:k]) + "`\n")
		data = data[k:]
	}
}

// printable keeps a comment on its line.
func printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// isPlain reports UTF-8 without control characters that text does not have.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return utf8.Valid(b)
}

func isFloat(fd protoreflect.FieldDescriptor) bool {
	return fd != nil && (fd.Kind() == protoreflect.FloatKind || fd.Kind() == protoreflect.DoubleKind)
}

func messageOf(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd == nil {
		return nil
	}
	return fd.Message()
}

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
