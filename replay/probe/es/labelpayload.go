package es

import "google.golang.org/protobuf/encoding/protowire"

// appendUnlist gives a number a value of tags that a message, or a varint, reads
// as such. A list of varints reads on over the value's end, and stumbles.
func appendUnlist(b []byte, n int32, index int, tags []byte) []byte {
	tags = append(fill(append(tags, skip8...), 7), 0x80)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	b = protowire.AppendBytes(b, tags)
	b = append(b, skip4...)
	return fill(appendCanary(b, index, slotPacked), 1)
}

// appendLabelTest is silent for a list where that is expected, or for a single
// number of 4 or 8 bytes, and stumbles for the other.
func appendLabelTest(b []byte, n int32, as consumption, list bool, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	switch {
	case list && as == asVarint: // one varint of three bytes, and one of one
		b = append(b, 4)
		return fill(appendCanary(b, index, slotPacked), 1)
	case list && as == asFixed32: // two of four bytes
		b = fill(append(b, 8), 3)
		return fill(appendCanary(b, index, slotPacked), 2)
	case list: // two of eight
		b = fill(append(b, 16), 7)
		return fill(appendCanary(b, index, slotPacked), 6)
	// the length is its first byte; a list ends two bytes into what is skipped
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
