package text

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// damaged writes a node that is no field: what was expected and what was found, as a
// comment, and of a field that is cut off what is there of it, behind its tag.
func (p *printer) damaged(c int32, n *wire.Node, md protoreflect.MessageDescriptor, depth int) {
	p.indent(depth)
	p.w.WriteString("# " + printable(wire.ErrorText(n.Err, p.base)) + "\n")
	data := p.t.Payload(c)
	var e *wire.Error
	tag, size := wire.ConsumeVarint(data)
	if number := tag >> 3; !errors.As(n.Err, &e) || size <= 0 || number == 0 || number > maxDeclared || !e.AfterTag() {
		p.hex(data, depth)
		return
	}
	number, typ := tag>>3, wire.Type(tag&7)
	fd := fieldOf(md, number)
	p.indent(depth)
	p.long(size - wire.SizeVarint(tag))
	p.w.WriteString(strconv.FormatUint(number, 10) + ":" + [...]string{"VARINT", "I64", "LEN", "SGROUP", "EGROUP", "I32"}[typ])
	data = data[size:]
	if e.Reason != wire.LengthRange {
		p.rest(data, fd, depth)
		return
	}
	at := n.End - len(data)
	length, size := wire.ConsumeVarint(data)
	if size <= 0 {
		p.rest(data, fd, depth)
		return
	}
	p.w.WriteByte(' ')
	p.long(size - wire.SizeVarint(length))
	p.w.WriteString(strconv.FormatUint(length, 10))
	if data = data[size:]; len(data) == 0 || p.cuts >= maxCuts || !p.cutMessage(data, p.base+at+size, fd, depth) {
		p.rest(data, fd, depth)
	}
}

// maxCuts bounds fields that are cut off within each other.
const maxCuts = 100

// rest writes what is there of a value, as bytes.
func (p *printer) rest(data []byte, fd protoreflect.FieldDescriptor, depth int) {
	plain := len(data) > 0 && isPlain(data) && (len(data) > 1 || data[0] >= ' ')
	long := len(data) > hexLine
	switch {
	case long:
	case plain:
		p.w.WriteByte(' ')
		p.quote(data)
	case len(data) > 0:
		fmt.Fprintf(p.w, " `%x`", data)
	}
	if fd != nil {
		p.w.WriteString("  # " + string(fd.Name()) + ": " + declaration(fd))
	}
	p.w.WriteByte('\n')
	switch {
	case long && plain:
		p.quoted(data, depth+1)
	case long:
		p.hex(data, depth+1)
	}
}

// cutMessage writes what is there of a message, and reports whether it is one: its
// declaration says so, or nothing is wrong with it but that it ends, and no text would
// have such characters in it.
func (p *printer) cutMessage(data []byte, base int, fd protoreflect.FieldDescriptor, depth int) bool {
	md := messageOf(fd)
	s := &printer{w: p.w, find: p.find, deep: p.deep, cuts: p.cuts + 1, base: base}
	s.t.Reset(data, wire.Options{})
	if md == nil {
		if fd != nil || isPlain(data) || !s.t.OnlyCut() {
			return false
		}
	}
	if fd != nil {
		p.w.WriteString("  # " + string(fd.Name()) + ": " + declaration(fd))
	}
	p.w.WriteByte('\n')
	s.r = Options{}.reader(&s.t)
	s.fields(0, md, depth+1)
	p.find = s.find
	return true
}

// leastWords is how long a text is that tells a message from any bytes.
const leastWords = 4

// almostMessage writes a payload that would be a message if it did not end too early,
// and reports whether it is one: most of it is whole fields, some with text in them.
func (p *printer) almostMessage(c int32, data []byte, n *wire.Node, depth int) bool {
	if chosen, _ := p.r.Chosen(c); chosen || n.Err != nil || p.cuts >= maxCuts || len(data) > defaultSegmentLen || isPlain(data) || envelope.Sniff(data) != "" {
		return false
	}
	s := &printer{w: p.w, find: p.find, deep: p.deep, cuts: p.cuts + 1, base: p.base + n.Val}
	s.t.Reset(data, wire.Options{})
	whole, words := 0, false
	for i := range s.t.Nodes[1:] {
		f := s.t.Node(int32(i + 1))
		switch {
		case f.Err != nil && (f.Type != wire.Garbage || f.Parent != 0 || !wire.IsCut(f.Err)):
			return false
		case f.Type == wire.Garbage:
			continue
		case f.Parent == 0:
			whole += f.End - f.Off
		}
		text := s.t.Payload(int32(i + 1))
		words = words || f.Type == wire.Len && len(text) >= leastWords && isPlain(text)
	}
	if !words || whole < len(data)/2 {
		return false
	}
	p.w.WriteString("  # a message that is cut off\n")
	s.r = Options{}.reader(&s.t)
	s.fields(0, nil, depth+1)
	p.find = s.find
	p.indent(depth)
	p.w.WriteString("}\n")
	return true
}

// fieldOf is the declaration of a field, or nil.
func fieldOf(md protoreflect.MessageDescriptor, number uint64) protoreflect.FieldDescriptor {
	if md == nil || number == 0 || number > maxDeclared {
		return nil
	}
	return md.Fields().ByNumber(protoreflect.FieldNumber(number))
}

const maxDeclared = 1<<29 - 1
