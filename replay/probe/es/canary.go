package es

import (
	"regexp"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// A canary is a tag that is illegal in protobuf and carries an id; it is three bytes long. When the
// parser reads one as a tag, its error message quotes the tag, and thereby tells how everything
// before it was read.
//
// Shape: the three bytes are valid UTF-8 (a letter of two bytes and an ASCII character), because
// they may be read as part of a string. Their wire type is 6 or 7, which do not exist. The
// remaining bits carry an id of 16 bits.
//
// Source: replay/probe/README.md#protobuf-es-canaries

// A slot identifies one of several canaries in the test of a field number. A canary is an illegal tag
// that the parser quotes in its error; which one it reaches shows how it consumed the field's value.
type slot uint8

const (
	// slotFixed32: the value was read as 4 bytes.
	slotFixed32 slot = iota
	// slotFixed64: the value was read as 8 bytes.
	slotFixed64
	// slotMap: tags were read as those of a map entry, with nothing skipped between them.
	slotMap
	// slotLen: the value was skipped by its length.
	slotLen
	// slotVarint: a varint, or a message that has the same fields as the outer one.
	slotVarint
	// slotMessage: the value was read as a message of another type.
	slotMessage
	// slotPacked: the value was read as a list of varints.
	slotPacked
	// slotEnd: no test stopped the parser.
	slotEnd

	slots = 8
)

// maxBatch is the number of ids in one payload. Candidates have the indexes below controlIndex; the
// last three are reserved for the control, an assertion, and the end of the message.
const (
	maxBatch     = 1 << 16 / slots
	assertion    = maxBatch - 2
	controlIndex = maxBatch - 3
	// idStep is the distance between the ids of two consecutive requests.
	idStep = 3001
)

// controlNumber is the field number of the control; it is reserved, so no definition can have it.
const controlNumber = 19_083

// appendControl appends the test of a field number that cannot exist. If the parser stops at its canary
// (an illegal tag that its error quotes), it would do so for every number, and its other responses
// prove nothing.
func appendControl(b []byte) []byte {
	b = appendFixedTest(b, controlNumber, controlIndex)
	b = appendLenTest(b, controlNumber, controlIndex)
	return appendVarintTest(b, controlNumber, controlIndex, nil)
}

// appendCanary appends the canary, i.e. the illegal tag of three bytes, for an index and a slot.
func appendCanary(b []byte, index int, s slot) []byte {
	id := index*slots + int(s)
	return append(b,
		0xC6|byte(id&1)|byte(id>>1&3)<<3,
		0x80|byte(id>>3&0x3F),
		byte(id>>9&0x7F))
}

// illegalTag matches the error of protobuf-es about an illegal tag.
var illegalTag = regexp.MustCompile(`illegal tag: field no (\d{1,10}) wire type (\d)`)

// A sighting is what an error message reveals about canaries, i.e. the illegal tags that the probe puts
// into requests in order to recognise where the parser stopped.
type sighting struct {
	// index is the index of the tested field in the request.
	index int

	// slot is the position of the canary in the test of that field, which shows how the parser consumed
	// the value.
	slot slot
	// illegal means that the parser reached an illegal tag; canary means that this tag is a canary of
	// the probe, with this index and slot.
	illegal, canary bool
}

// isEnd reports whether the parser reached the end of the payload, whose canary has this index.
func (g sighting) isEnd(index int) bool {
	return g.canary && g.slot == slotEnd && g.index == index
}

// readCanary returns which canary (illegal tag) an error message quotes, if any.
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

// Tags of reserved field numbers (19,000 to 19,999), so that every parser skips the field in any
// message. The three bytes are valid UTF-8.
var (
	// skip4 precedes 4 bytes: field 19,080, fixed32
	skip4 = []byte{0xC5, 0xA8, 0x09}
	// skip8 precedes 8 bytes: field 19,081, fixed64
	skip8 = []byte{0xC9, 0xA8, 0x09}

	// skipLen precedes a length and that many bytes: field 19,080.
	skipLen = []byte{0xC2, 0xA8, 0x09}
)

// filler is a byte that no parser interprets.
const filler = ' '

// fill appends n filler bytes.
func fill(b []byte, n int) []byte {
	for range n {
		b = append(b, filler)
	}
	return b
}

// appendFixedTest appends a test of field n, whose canary (an illegal tag) the parser reaches only if
// the field is fixed32 or fixed64. A parser that reads another type or skips the field gets past it:
// the bytes are then the varint 0, an empty string or message, or skipped. index is the index of the
// field in the request.
func appendFixedTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0)
	b = append(b, skip8...)
	b = fill(appendCanary(b, index, slotFixed32), 1)
	return fill(appendCanary(b, index, slotFixed64), 1)
}

// appendLenTest appends a test at which the parser stops if field n is a string or bytes, or a map in
// runtimes that do not skip unknown fields of an entry. It gets past the test for a varint, a message
// or an unknown field. Fixed-size fields never get here, because appendFixedTest precedes it.
func appendLenTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.Fixed64Type)
	// Read as a string, this is ten bytes; read as a varint or as a message's length, tags follow.
	b = append(b, 10)
	b = append(b, skip4...)
	b = fill(appendCanary(b, index, slotMap), 1)
	// the eight bytes of an unknown field end here
	b = append(b, skip4...)
	return fill(appendCanary(b, index, slotLen), 1)
}

// A consumption is how a parser reads the value of a field, depending on the field's type; absent means
// that it skips an unknown field.
type consumption uint8

const (
	absent consumption = iota
	// asVarint includes messages, because their length is read in the same way.
	asVarint
	asFixed32
	asFixed64
	asLen
)

// A reading says how messages of a certain type read the field with this number.
type reading struct {
	// number is the field number.
	number int32

	// as is how the value is consumed.
	as consumption
}

// appendReading appends a test at which the parser stops unless it consumes the field as expected by r.
// If it stops, the parser is in a message of another type than the one to which the reading belongs.
//
// Shape: if the field is expected to be unknown, a fixed32 is accepted too.
func appendReading(b []byte, r reading, index int) []byte {
	type4, type8 := protowire.Fixed32Type, protowire.Fixed64Type
	tag := func(t protowire.Type) { b = protowire.AppendTag(b, protowire.Number(r.number), t) }
	stumble := func() { b = appendCanary(b, index, slotMessage) }
	switch r.as {
	case absent:
		tag(type4)
		b = append(b, 7)
		// reached if the field is a varint or a message
		stumble()
		b = append(b, skip4...)
		b = fill(b, 1)
		// reached for 8 bytes, or a string of 7
		stumble()
	case asVarint:
		tag(type4)
		b = append(b, 3)
		b = append(b, skip8...)
		// reached if it is unknown, for 4 bytes, or a string of 3
		stumble()
		b = fill(b, 1)
		// reached for 8 bytes
		stumble()
		b = fill(b, 1)
	case asLen:
		tag(type4)
		b = append(b, 10)
		// reached if it is a varint
		stumble()
		// reached if it is unknown, or for 4 bytes
		stumble()
		b = fill(b, 1)
		// reached for 8 bytes
		stumble()
	case asFixed64:
		tag(type4)
		b = append(b, 3)
		// reached if it is a varint
		stumble()
		// reached if it is unknown, for 4 bytes, or a string of 3
		stumble()
		b = fill(b, 1)
	case asFixed32:
		tag(type8)
		b = append(b, 7)
		// reached if it is a varint
		stumble()
		b = append(b, skip4...)
		b = fill(b, 1)
		// reached if it is unknown, for 8 bytes, or a string of 7
		stumble()
	}
	return b
}

// appendVarintTest appends a test at which the parser stops if field n is a varint, a packed list of
// varints or a message. Strings, bytes and fixed-size numbers never get here.
//
// Shape: after a varint, the parser reads the following tags as fields of the outer message; in a
// message, it reads the same tags as the message's own fields. The readings distinguish the two. A
// packed list is read to the end of the value and beyond, because its last varint is not terminated.
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

// appendConfirmation appends a test at which the parser stops if field n is a message with at least one
// field that differs from those of the outer message, and not if it is a varint.
func appendConfirmation(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	return protowire.AppendBytes(b, p)
}

// tooDeep is a nesting depth at which every parser gives up: protobuf-es 2 has a limit of 100 levels,
// and protobuf-es 1 exhausts the stack, of which it needs little once its code is compiled.
const tooDeep = 20_000

// appendDeep appends field n nested in itself, levels deep. If field n is a message that has itself as
// field n, the parser descends until it gives up; if it is a varint, the parser does not stop.
func appendDeep(b []byte, n int32, levels int) []byte {
	one := append(protowire.AppendTag(nil, protowire.Number(n), protowire.VarintType), 1)
	for range levels {
		b = append(b, one...)
	}
	return b
}

// appendGroupTest appends a test at which the parser stops if field n is a group, whose content it
// parses immediately. It must be the first tested field that exists.
func appendGroupTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	return appendCanary(b, index, slotEnd)
}

// appendGroupAssertion appends a test at which the parser stops if field n is unknown or is read as a
// varint, and not if it is a group.
func appendGroupAssertion(b []byte, n int32) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, skip4...)
	b = fill(appendCanary(b, assertion, slotEnd), 1)
	return protowire.AppendTag(b, protowire.Number(n), protowire.EndGroupType)
}

// appendEnd appends the end of a payload: a canary (an illegal tag) that no parser accepts in any
// context.
func appendEnd(b []byte, index int) []byte {
	b = appendCanary(b, index, slotEnd)
	for range 32 {
		b = append(b, 0x07)
	}
	return b
}
