package text

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// damaged prints node c, which is garbage and not a field, with its error as a comment. If it is a truncated field,
// the tag and the available bytes are printed. md is the enclosing message's type or nil.
func (p *printer) damaged(c int32, n *wire.Node, md protoreflect.MessageDescriptor, depth int) {
	p.indent(depth)
	p.w.WriteString("# " + printable(wire.ErrorText(p.t.Fault(n), p.base)) + "\n")
	data := p.t.Payload(c)
	var e *wire.Error
	tag, size := wire.ConsumeVarint(data)
	if number := tag >> 3; !errors.As(p.t.Fault(n), &e) || size <= 0 || number == 0 || number > maxDeclared || !e.AfterTag() {
		p.hex(data, depth)
		return
	}

	// The tag is sound: print it with an explicit wire type, because the value does not follow as usual.
	number, typ := tag>>3, wire.Type(tag&7)
	fd := fieldOf(md, number)
	p.indent(depth)
	p.long(size - wire.SizeVarint(tag))
	p.w.WriteString(strconv.FormatUint(number, 10) + ":" + [...]string{"VARINT", "I64", "LEN", "SGROUP", "EGROUP", "I32"}[typ])
	data = data[size:]
	if e.Reason != wire.LengthRange {
		p.available(data, fd, depth)
		return
	}

	// A length beyond the end: print it as a number, and the available bytes behind it.
	at := n.End - len(data)
	length, size := wire.ConsumeVarint(data)
	if size <= 0 {
		p.available(data, fd, depth)
		return
	}
	p.w.WriteByte(' ')
	p.long(size - wire.SizeVarint(length))
	p.w.WriteString(strconv.FormatUint(length, 10))
	if data = data[size:]; len(data) == 0 || p.truncations >= maxTruncatedNesting || !p.truncatedMessage(data, p.base+at+size, fd, depth) {
		p.available(data, fd, depth)
	}
}

// maxTruncatedNesting is the maximum number of truncated fields inside each other that are printed as messages.
const maxTruncatedNesting = 100

// available prints the available part of a truncated value as a string or in hex. A single control character is
// clearer in hex. fd is the field's declaration or nil.
func (p *printer) available(data []byte, fd protoreflect.FieldDescriptor, depth int) {
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

	// Long data goes below the field.
	switch {
	case long && plain:
		p.quoted(data, depth+1)
	case long:
		p.hex(data, depth+1)
	}
}

// truncatedMessage prints data, the available part of a truncated value, as a message. It returns false if that is
// not a message: unless fd declares it as one, it must be sound apart from its missing end, and must not be plain
// text. base is the offset of data.
func (p *printer) truncatedMessage(data []byte, base int, fd protoreflect.FieldDescriptor, depth int) bool {
	md := messageOf(fd)
	s := &printer{w: p.w, find: p.find, deep: p.deep, truncations: p.truncations + 1, base: base, plain: p.plain}
	s.t.Reset(data, wire.Options{})
	if md == nil {
		if fd != nil || isPlain(data) || !s.t.OnlyTruncated() {
			return false
		}
	}
	if fd != nil {
		p.w.WriteString("  # " + string(fd.Name()) + ": " + declaration(fd))
	}
	p.w.WriteByte('\n')
	if !p.plain {
		s.r = Options{}.reader(&s.t, nil)
	}
	s.fields(0, md, depth+1)
	p.find = s.find
	return true
}

// leastWords is the minimum length in bytes of a string inside truncated data that makes it plausible that the data
// is a message.
const leastWords = 4

// almostMessage prints payload data of node c if it is a message apart from its missing end, and otherwise returns
// false. Most of it must be complete fields, and one of them must contain text.
func (p *printer) almostMessage(c int32, data []byte, n *wire.Node, depth int) bool {
	if chosen, _ := p.r.Chosen(c); chosen || !n.Sound() || p.truncations >= maxTruncatedNesting || len(data) > defaultSegmentLen || !maybeTruncated(data) {
		return false
	}

	// The limits on size and nesting bound the time for payloads that are not messages.
	s := &printer{w: p.w, find: p.find, deep: p.deep, truncations: p.truncations + 1, base: p.base + n.Val}
	s.t.Reset(data, wire.Options{})
	whole, words := 0, false
	for i := range s.t.Nodes[1:] {
		f := s.t.Node(int32(i + 1))
		switch {
		case !f.Sound() && (f.Type != wire.Garbage || f.Parent != 0 || !wire.IsTruncated(s.t.Fault(f))):
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
	p.offsets++
	p.w.WriteString("  # the message is truncated\n")
	s.r = Options{}.reader(&s.t, nil)
	s.fields(0, nil, depth+1)
	p.find = s.find
	p.indent(depth)
	p.w.WriteString("}\n")
	return true
}

// maybeTruncated reports whether data may be a truncated message: it is neither text nor compressed, and whole fields
// make up at least half of it, or are followed by a group, whose size is not written in its tag.
func maybeTruncated(data []byte) bool {
	if isPlain(data) || envelope.Sniff(data) != "" {
		return false
	}
	n, isGroup := wire.SkipFields(data)
	return n >= len(data)/2 || isGroup
}

// fieldOf returns the declaration of a field in md, or nil.
func fieldOf(md protoreflect.MessageDescriptor, number uint64) protoreflect.FieldDescriptor {
	if md == nil || number == 0 || number > maxDeclared {
		return nil
	}
	return md.Fields().ByNumber(protoreflect.FieldNumber(number))
}

// maxDeclared is the highest field number of protobuf.
const maxDeclared = 1<<29 - 1
