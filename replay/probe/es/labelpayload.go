package es

import "google.golang.org/protobuf/encoding/protowire"

// appendUnlist appends a value of field n at which the parser stops if the field is a packed list of
// varints, because it reads beyond the end of the value. A message or a single varint reads the value
// as tags and gets past it.
func appendUnlist(b []byte, n int32, index int, tags []byte) []byte {
	tags = append(fill(append(tags, skip8...), 7), 0x80)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	b = protowire.AppendBytes(b, tags)
	b = append(b, skip4...)
	return fill(appendCanary(b, index, slotPacked), 1)
}

// appendLabelTest appends a test of field n, whose value is consumed in the way as. The parser stops if
// the field is not repeated as expected: list means that it should be repeated.
func appendLabelTest(b []byte, n int32, as consumption, list bool, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	switch {
	// one varint of three bytes, and one of one byte
	case list && as == asVarint:
		b = append(b, 4)
		return fill(appendCanary(b, index, slotPacked), 1)
	// two numbers of four bytes
	case list && as == asFixed32:
		b = fill(append(b, 8), 3)
		return fill(appendCanary(b, index, slotPacked), 2)
	// two numbers of eight bytes
	case list:
		b = fill(append(b, 16), 7)
		return fill(appendCanary(b, index, slotPacked), 6)
	// A single number includes the length byte; a list ends two bytes into the skipped field.
	case as == asFixed32:
		b = fill(append(b, 8), 3)
		b = fill(append(b, skip8...), 2)
		return fill(appendCanary(b, index, slotPacked), 3)
	default:
		b = fill(append(b, 24), 7)
		b = fill(append(b, skip8...), 8)
		b = fill(append(b, skip8...), 3)
		return fill(appendCanary(b, index, slotPacked), 2)
	}
}
