package text

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A largeField is the first field of some data, if that field contains a message that is too large to be parsed at
// once. It is printed in segments (runs of whole fields), like the message around it, so its tree is never in
// memory as a whole.
type largeField struct {
	// field has the number, type and name of the large field.
	field *field.Field

	// payload is the message inside the large field.
	payload []byte

	// head is the size of the tag and the length in bytes.
	head int

	// fd is the declaration of the field; nil if unknown.
	fd protoreflect.FieldDescriptor
}

const (
	// maxLarge is the maximum nesting depth of large fields.
	maxLarge = 50

	// largeSample is the maximum number of bytes that are examined to recognize a large message.
	largeSample = 64 << 10

	// largeFields is the maximum number of fields that are examined if the first one exceeds largeSample.
	largeFields = 10_000
)

// largeMessage returns data's first field if it is a largeField. With evidence (statistics of other messages) or
// users' choices of types there is none: these refer to paths from the root, and frames have limited sizes anyway.
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

	// The field is complete. A declaration or its first fields must confirm that it is a message.
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

// isLargeMessage reports whether a large payload is probably a message, judged by its first fields, up to sampleLen
// bytes. If the first field exceeds them, the payload must consist of fields up to its end.
func isLargeMessage(payload []byte, sampleLen int) bool {
	sampleLen = min(sampleLen, largeSample)
	if part := segment(payload, sampleLen); len(part) <= 2*sampleLen {
		// Wrap the sample in a field, so that all readings of it compete.
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

// inner returns the options for printing the field's message.
func (f *largeField) inner(o Options) Options {
	o.Type = messageOf(f.fd)
	o.within++
	return o
}

// large prints a large field. base is its offset.
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

// large prints a large field. base is its offset.
func (p *jsonPrinter) large(f largeField, o Options, base int) {
	f.field.Off = base
	p.line = f.field.AppendHead(p.line[:0])
	p.w.Write(append(p.line, `,"fields":[`...))
	p.segments(f.payload, f.inner(o), base+f.head)
	p.w.WriteString("]}")
}
