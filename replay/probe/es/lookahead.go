package es

import "google.golang.org/protobuf/encoding/protowire"

// A look is a candidate that is asked about behind another one, in the same
// request: where a parser jumped over a text, or over four or eight bytes, it
// lands in a place of its own, which every other reading skips. Canaries there
// tell of two fields at once.
//
// Shape: only what leaves the parser among the fields of the same message leads
// to such a place. A varint does not: it could be a message yet.
type look struct {
	number int32 // it is of the class that by stands for, and
	by     slot
	next   int32 // this is the first candidate below it that exists
}

// The classes that lead to a place of their own.
var jumps = [...]slot{slotFixed32, slotFixed64, slotLen}

const (
	lookFrom  = 20 // candidates at the top of a batch that are looked behind
	lookWidth = 20 // candidates that are asked about behind each of them
)

// ahead chooses what is asked about behind the candidates of a batch: where the
// numbers are dense, the next field is near.
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

// place is what stands where a candidate's value leads if it is of a class: the
// tests of what is asked about there, and the canary of the class.
func (m *message) place(b batch, i int, s slot) []byte {
	var p []byte
	n := b.numbers[i]
	m.found[n] = &field{number: n, slot: s} // as it is for who gets here
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

// appendSkipped appends what every reading of a message skips: an unknown field
// with a length.
//
// Shape: seven bytes stand before content, the first six of which are text.
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

// appendFixedJumps is appendFixedTest with places for what is read as 4 and as
// 8 bytes: a tag that skips 8 bytes stands where each goes on, and ends before
// its place.
func appendFixedJumps(b []byte, n int32, place4, place8 []byte) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip4...)
	b = append(b, skip8...) // here 4 bytes end
	b = fill(b, 1)
	b = appendSkipped(b, place4) // here 8 bytes end, and all else goes on
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip8...)
	b = fill(b, 4)
	b = append(b, skip8...) // here 8 bytes end
	b = fill(b, 1)
	return appendSkipped(b, place8) // here all else goes on
}

// appendLenJump is appendLenTest with a place for what jumps over text.
func appendLenJump(b []byte, n int32, index int, place []byte) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.Fixed64Type)
	// up to the place; or a varint, or a message's length, and then tags
	b = append(b, 14)
	b = append(b, skip4...)
	b = fill(appendCanary(b, index, slotMap), 1)
	return appendSkipped(b, place) // here the eight bytes of an unknown field end
}
