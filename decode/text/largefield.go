package text

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A largeField is a field at the beginning of some bytes that holds a message of more
// than a segment. It is written a segment at a time, as the message around it is: its
// tree is never held as a whole.
type largeField struct {
	field   *field.Field
	payload []byte
	head    int // bytes of its tag and its length
	fd      protoreflect.FieldDescriptor
}

const (
	maxLarge = 50 // such fields within each other

	// Bytes that are looked at to tell whether a field is one.
	largeSample = 64 << 10

	largeFields = 10_000 // fields, where the first is larger
)

// largeMessage looks for a largeField. Where evidence or somebody's choice says what fields
// are, which goes by the path from the root, there is none: a frame is bounded itself.
func largeMessage(data []byte, o Options) (f largeField, ok bool) {
	if o.Evidence != nil || len(o.Choices) > 0 || len(data) <= o.segmentLen || o.within >= maxLarge {
		return f, false
	}
	tag, n := wire.ConsumeVarint(data)
	if n <= 0 || wire.Type(tag&7) != wire.Len || tag>>3 == 0 || tag>>3 > maxDeclared {
		return f, false
	}
	length, m := wire.ConsumeVarint(data[n:])
	if m <= 0 || length <= uint64(o.segmentLen) || length > uint64(len(data)-n-m) {
		return f, false
	}
	f.head = n + m
	f.payload = data[f.head : f.head+int(length)]
	f.fd = fieldOf(o.Type, tag>>3)
	if f.fd != nil && f.fd.Message() == nil || !isLargeMessage(f.payload, o.segmentLen) {
		return f, false
	}
	f.field = &field.Field{
		N: tag >> 3, Wire: wire.Len.String(), Len: f.head + int(length), Kind: string(wire.KindMessage), Type: string(wire.KindMessage),
		LongTag: n - wire.SizeVarint(tag), LongLen: m - wire.SizeVarint(length),
	}
	if f.fd != nil {
		f.field.Name, f.field.Type = string(f.fd.Name()), string(f.fd.Message().FullName())
	}
	return f, true
}

// isLargeMessage judges a payload by its first fields. If the first one is larger than
// what is looked at, fields must follow it to the end.
func isLargeMessage(payload []byte, least int) bool {
	least = min(least, largeSample)
	if part := segment(payload, least); len(part) <= 2*least {
		part = slices.Concat([]byte{1<<3 | byte(wire.Len)}, wire.AppendVarint(nil, uint64(len(part))), part)
		k, _, _ := kind.NewReader(wire.Parse(part, wire.Options{}), nil).Best(1)
		return k == wire.KindMessage
	}
	for range largeFields {
		n := wire.SkipField(payload)
		if n == 0 {
			return len(payload) == 0
		}
		payload = payload[n:]
	}
	return true
}

// inner are the options for what the field holds.
func (f *largeField) inner(o Options) Options {
	o.Type = messageOf(f.fd)
	o.within++
	return o
}

// large writes the field, whose first byte is at offset base.
func (p *printer) large(f largeField, o Options, base, depth int) {
	p.indent(depth)
	p.long(f.field.LongTag)
	p.w.WriteString(strconv.FormatUint(f.field.N, 10) + ": ")
	p.long(f.field.LongLen)
	p.w.WriteByte('{')
	if f.fd != nil {
		p.w.WriteString("  # " + string(f.fd.Name()) + ": " + declaration(f.fd))
	}
	p.w.WriteByte('\n')
	p.segments(f.payload, f.inner(o), base+f.head, depth+1)
	p.indent(depth)
	p.w.WriteString("}\n")
}

// large writes the field, whose first byte is at offset base.
func (p *jsonPrinter) large(f largeField, o Options, base int) {
	f.field.Off = base
	p.line = f.field.AppendHead(p.line[:0])
	p.w.Write(append(p.line, `,"fields":[`...))
	p.segments(f.payload, f.inner(o), base+f.head)
	p.w.WriteString("]}")
}
