package es

import "google.golang.org/protobuf/encoding/protowire"

// A look is a pair of field numbers that are tested in the same request. If the first field is a
// string, or a fixed-size number, the parser continues at a position that it reaches for no other type,
// where the second field is tested. So one request can reveal two fields.
//
// Shape: only types after which the parser is still in the same message have such a position. A varint
// has none, because it could turn out to be a message.
type look struct {
	// number is the number of the first field.
	number int32

	// by is the class of the first field.
	by slot
	// next is the second candidate: if the parser stops at its canary, both fields exist, and none
	// between them.
	next int32
}

// jumps are the classes of fields after which the parser continues at a position that it reaches for no
// other class.
var jumps = [...]slot{slotFixed32, slotFixed64, slotLen}

const (
	// lookFrom is how many candidates at the top of a batch have a lookahead.
	lookFrom = 20
	// lookWidth is how many candidates each lookahead tests.
	lookWidth = 20
)

// ahead adds to a batch the pairs of field numbers that are tested together, so that one request can
// reveal two fields: if field numbers are dense, the next field is near.
func (m *message) ahead(b batch) batch {
	b.base = len(b.numbers) + 1 + len(m.candidatesForMessage())
	if len(m.suspects) > 0 || m.small() {
		return b
	}
	for i, n := range b.numbers[:min(lookFrom, len(b.numbers))] {
		for _, s := range jumps {
			for _, next := range b.numbers[i+1 : min(i+1+lookWidth, len(b.numbers))] {
				if b.base+len(b.looks) >= controlIndex {
					return b
				}
				b.looks = append(b.looks, look{n, s, next})
			}
		}
	}
	return b
}

// place returns the bytes at which the parser continues if field number i of the batch is of class s:
// tests of further field numbers (lookahead), and the canary of the class.
func (m *message) place(b batch, i int, s slot) []byte {
	var p []byte
	n := b.numbers[i]
	// whoever gets here has read it as this class
	m.found[n] = &field{number: n, slot: s}
	defer delete(m.found, n)
	for k, l := range b.looks {
		if l.number == n && l.by == s {
			p = appendFixedTest(p, l.next, m.id(b.base+k))
			p = appendLenTest(p, l.next, m.id(b.base+k))
			p = appendVarintTest(p, l.next, m.id(b.base+k), m.readings(l.next))
		}
	}
	return appendCanary(p, m.id(i), s)
}

// appendSkipped appends content as an unknown length-delimited field, which every message skips.
//
// Shape: seven bytes precede content, the first six of which are valid UTF-8.
func appendSkipped(b, content []byte) []byte {
	size := len(content) + 1
	for size&0x7F < 0x42 || size&0x7F > 0x5F || size>>7&0x7F > 0x3F {
		size++
	}
	b = append(b, skipLen...)
	b = append(b, 0x80|byte(size&0x7F), 0x80|byte(size>>7&0x7F), byte(size>>14))
	b = append(fill(b, 1), content...)
	return fill(b, size-1-len(content))
}

// appendFixedJumps appends the test of appendFixedTest with bytes at which the parser continues: place4
// if the value has 4 bytes, and place8 if it has 8. At each continuation there is a tag that skips 8
// bytes, which end before the place.
func appendFixedJumps(b []byte, n int32, place4, place8 []byte) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip4...)
	// 4 bytes end here
	b = append(b, skip8...)
	b = fill(b, 1)
	// 8 bytes end here, and all other readings continue
	b = appendSkipped(b, place4)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip8...)
	b = fill(b, 4)
	// 8 bytes end here
	b = append(b, skip8...)
	b = fill(b, 1)
	// all other readings continue here
	return appendSkipped(b, place8)
}

// appendLenJump appends the test of appendLenTest with bytes, place, at which the parser continues
// after a string.
func appendLenJump(b []byte, n int32, index int, place []byte) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.Fixed64Type)
	// Read as a string, it ends at the place; read as a varint or as a message's length, tags
	// follow.
	b = append(b, 14)
	b = append(b, skip4...)
	b = fill(appendCanary(b, index, slotMap), 1)
	// the eight bytes of an unknown field end here
	return appendSkipped(b, place)
}
