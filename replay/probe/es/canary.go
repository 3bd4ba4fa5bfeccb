package es

import (
	"regexp"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// A canary is an illegal tag that carries an id, three bytes long. Wherever the
// parser stumbles over one, its error names it.
//
// Shape: the three bytes are text, too (a letter of two bytes and an ASCII
// character), as they may be read as the value of a string. Their wire type is
// 6 or 7, which does not exist. 16 bits of an id are spread over what is left.
//
// Source: replay/probe/README.md#protobuf-es-canaries

// A slot says where a candidate's canary lies, which is what it means.
type slot uint8

const (
	slotFixed32 slot = iota // the value was read as 4 bytes
	slotFixed64             // as 8 bytes
	slotMap                 // tags were read with nothing skipped between them
	slotLen                 // the value was jumped over
	// a varint, or a message whose fields are the outer ones
	slotVarint
	slotMessage // another type's fields were met
	slotPacked  // a list of varints
	slotEnd     // nobody stumbled

	slots = 8
)

// maxBatch is how many ids one payload can have. Candidates have the indexes
// below controlIndex; the last three are of the control, of an assertion, and of
// what stands behind the message.
const (
	maxBatch     = 1 << 16 / slots
	assertion    = maxBatch - 2
	controlIndex = maxBatch - 3
	idStep       = 3001 // between the ids of two requests
)

// controlNumber is what the control asks about: no definition can have it.
const controlNumber = 19_083

// appendControl asks about a number that cannot exist. A parser that reads a
// message there skips all of it; where it stumbles, its other answers mean
// nothing either.
func appendControl(b []byte) []byte {
	b = appendFixedTest(b, controlNumber, controlIndex)
	b = appendLenTest(b, controlNumber, controlIndex)
	return appendVarintTest(b, controlNumber, controlIndex, nil)
}

func appendCanary(b []byte, index int, s slot) []byte {
	id := index*slots + int(s)
	return append(b,
		0xC6|byte(id&1)|byte(id>>1&3)<<3,
		0x80|byte(id>>3&0x3F),
		byte(id>>9&0x7F))
}

var illegalTag = regexp.MustCompile(`illegal tag: field no (\d{1,10}) wire type (\d)`)

// A sighting is what an answer says of canaries.
type sighting struct {
	index int
	slot  slot
	// illegal says that the parser met an illegal tag, canary that it is one of
	// ours: index and slot are its.
	illegal, canary bool
}

// isEnd reports whether it is the end of a payload, whose canary has an index.
func (g sighting) isEnd(index int) bool {
	return g.canary && g.slot == slotEnd && g.index == index
}

// readCanary finds the canary that an error's text names.
func readCanary(message string) sighting {
	m := illegalTag.FindStringSubmatch(message)
	if m == nil {
		return sighting{}
	}
	no, _ := strconv.ParseUint(m[1], 10, 64)
	wt, _ := strconv.ParseUint(m[2], 10, 64)
	tag := no<<3 | wt
	b0, b1, b2 := tag&0x7F, tag>>7&0x7F, tag>>14
	if b2 > 0x7F || b1 > 0x3F || b0&0x66 != 0x46 {
		return sighting{illegal: true}
	}
	id := int(b0&1 | b0>>3&3<<1 | b1<<3 | b2<<9)
	return sighting{index: id / slots, slot: slot(id % slots), illegal: true, canary: true}
}

// Tags of numbers that no definition can have (19,000 to 19,999 are reserved),
// so every parser skips them, in whatever message it believes to be. Their
// three bytes are text, too.
var (
	skip4 = []byte{0xC5, 0xA8, 0x09} // and 4 bytes: number 19,080
	skip8 = []byte{0xC9, 0xA8, 0x09} // and 8 bytes: number 19,081

	// and what a length stands before: number 19,080
	skipLen = []byte{0xC2, 0xA8, 0x09}
)

// filler is a character that nobody reads.
const filler = ' '

func fill(b []byte, n int) []byte {
	for range n {
		b = append(b, filler)
	}
	return b
}

// appendFixedTest stumbles for fields of 4 and 8 bytes, and for nothing else:
// the value is the varint 0, or an empty text or message, or those bytes and
// the following three or seven.
func appendFixedTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip8...)
	b = fill(appendCanary(b, index, slotFixed32), 1)
	return fill(appendCanary(b, index, slotFixed64), 1)
}

// appendLenTest stumbles for text and bytes, and for a map of runtimes that do
// not skip what is unknown in an entry. It is silent for a varint, for a
// message, and for a number that is unknown; fields of 4 and 8 bytes never get here.
func appendLenTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.Fixed64Type)
	// text of ten bytes; or a varint, or a message's length, and then tags
	b = append(b, 10)
	b = append(b, skip4...)
	b = fill(appendCanary(b, index, slotMap), 1)
	b = append(b, skip4...) // here the eight bytes of an unknown field end
	return fill(appendCanary(b, index, slotLen), 1)
}

// A class as a parser consumes it, with absent for an unknown number.
type consumption uint8

const (
	absent   consumption = iota
	asVarint             // or a message
	asFixed32
	asFixed64
	asLen
)

// A reading is a number of the message with how its value is consumed.
type reading struct {
	number int32
	as     consumption
}

// appendReading stumbles unless the parser consumes the value of a number as
// expected: then it is in another message than the one that the reading is of.
//
// Shape: where a number is expected to be unknown, one of 4 bytes passes, too.
func appendReading(b []byte, r reading, index int) []byte {
	type4, type8 := protowire.Fixed32Type, protowire.Fixed64Type
	tag := func(t protowire.Type) { b = protowire.AppendTag(b, protowire.Number(r.number), t) }
	stumble := func() { b = appendCanary(b, index, slotMessage) }
	switch r.as {
	case absent:
		tag(type4)
		b = append(b, 7)
		stumble() // a varint or a message
		b = append(b, skip4...)
		b = fill(b, 1)
		stumble() // 8 bytes, or 7 of a text
	case asVarint:
		tag(type4)
		b = append(b, 3)
		b = append(b, skip8...)
		stumble() // unknown, 4 bytes, or 3 of a text
		b = fill(b, 1)
		stumble() // 8 bytes
		b = fill(b, 1)
	case asLen:
		tag(type4)
		b = append(b, 10)
		stumble() // a varint
		stumble() // unknown, or 4 bytes
		b = fill(b, 1)
		stumble() // 8 bytes
	case asFixed64:
		tag(type4)
		b = append(b, 3)
		stumble() // a varint
		stumble() // unknown, 4 bytes, or 3 of a text
		b = fill(b, 1)
	case asFixed32:
		tag(type8)
		b = append(b, 7)
		stumble() // a varint
		b = append(b, skip4...)
		b = fill(b, 1)
		stumble() // unknown, 8 bytes, or 7 of a text
	}
	return b
}

// appendVarintTest stumbles for varints, lists of them, and messages. Text,
// bytes and numbers of fixed size never get here.
//
// Shape: a varint is followed by tags that are read as the outer message's, a
// message by the same ones, read as its own; readings tell them apart. A list
// is read to the end of the value and over it, as its last varint goes on.
func appendVarintTest(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	p = append(appendCanary(p, index, slotVarint), 0x80)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	b = protowire.AppendBytes(b, p)
	b = append(b, skip4...)
	return fill(appendCanary(b, index, slotPacked), 1)
}

// appendConfirmation is silent for a varint, and stumbles for a message some of
// whose fields are not the outer ones.
func appendConfirmation(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	return protowire.AppendBytes(b, p)
}

// Levels at which parsers give up: protobuf-es 2 counts to 100, protobuf-es 1
// runs out of stack, and needs little of it once its code is compiled.
const tooDeep = 20_000

// appendDeep is silent for a varint; where number n is a message that has
// itself at number n, the parser goes down until it gives up.
func appendDeep(b []byte, n int32, levels int) []byte {
	one := append(protowire.AppendTag(nil, protowire.Number(n), protowire.VarintType), 1)
	for range levels {
		b = append(b, one...)
	}
	return b
}

// appendGroupTest stumbles for a group, whose tags are read at once. It is for
// candidates the first of which that exists is one.
func appendGroupTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	return appendCanary(b, index, slotEnd)
}

// appendGroupAssertion is silent for a group, and stumbles for a number that is
// unknown, or is read as a varint.
func appendGroupAssertion(b []byte, n int32) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, skip4...)
	b = fill(appendCanary(b, assertion, slotEnd), 1)
	return protowire.AppendTag(b, protowire.Number(n), protowire.EndGroupType)
}

// appendEnd ends a payload with what no parser takes, wherever it stands.
func appendEnd(b []byte, index int) []byte {
	b = appendCanary(b, index, slotEnd)
	for range 32 {
		b = append(b, 0x07)
	}
	return b
}
