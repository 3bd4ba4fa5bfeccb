package kind

import (
	"bytes"
	"slices"

	"unwire/decode/kind/stablehash"
	"unwire/decode/value"
)

// A memo has what was inferred from single values: from a payload or a number that is the only one of its field in a
// message that is judged alone. These inferences depend on nothing but the value and what is inside of it. The frames
// of a stream repeat values: words, roles, identifiers, small numbers.
//
// Limits: memoPlaces payloads of at most maxRemembered bytes, which takes 1.5 MB at most. A payload is remembered when
// it occurs for the second time, so that identifiers that never repeat cost little. Nothing is remembered of the first
// message, because many Readers read only one.
type memo struct {
	// messages is the number of messages that were read, up to 2.
	messages int

	// active is true while the memo is used for the current message.
	active bool

	// payloads is a direct-mapped cache: each payload has one place, by its hash, and replaces the payload there.
	payloads []inferredPayload

	// seen has, by the same place, a hash of the payload that occurred last there.
	seen []uint32

	// numbers has the possible types of a varint, by numberClass.
	numbers [][]Reading
}

// An inferredPayload has what was inferred from a payload.
type inferredPayload struct {
	// payload is a copy of the payload.
	payload []byte

	// tested are the hypotheses about its type, and readings its possible types; empty before they are computed.
	tested   []hypothesis
	readings []Reading
}

const (
	// memoPlaces is the number of payloads that a memo remembers.
	memoPlaces = 1024

	// maxRemembered is the maximum size in bytes of a payload that a memo remembers.
	maxRemembered = 64
)

// nextMessage prepares the memo for the next message, which has the given number of nodes. The memo is not used for
// messages that may exceed the limit on fields, since the dropped ones depend on the whole message.
func (m *memo) nextMessage(nodes int) {
	m.messages = min(m.messages+1, 2)
	if m.messages == 2 && m.payloads == nil {
		m.payloads, m.seen = make([]inferredPayload, memoPlaces), make([]uint32, memoPlaces)
		m.numbers = make([][]Reading, numberClasses)
	}
	m.active = m.payloads != nil && nodes <= maxOwnFields
}

// payload returns what was inferred from payload p, whose place is known. It is valid until the next call with another
// payload.
func (m *memo) payload(p []byte, place int) *inferredPayload {
	k := &m.payloads[place]
	if !bytes.Equal(k.payload, p) {
		k.payload, k.tested, k.readings = append(k.payload[:0], p...), k.tested[:0], k.readings[:0]
	}
	return k
}

// remember returns the place for payload p in the memo. ok is false if p is not to be remembered.
func (m *recycler) remember(p []byte) (place int, ok bool) {
	if m == nil || !m.memo.active || len(p) == 0 || len(p) > maxRemembered {
		return 0, false
	}
	hash := stablehash.Bytes(p)
	place = int(hash % memoPlaces)
	seen := &m.memo.seen[place]
	if *seen == uint32(hash>>32) {
		return place, true
	}
	*seen = uint32(hash >> 32)
	return place, bytes.Equal(m.memo.payloads[place].payload, p)
}

// remembered returns the place in the memo for the possible types of the field, or nil if they depend on more than one
// value.
func (f *Field) remembered() *[]Reading {
	switch {
	case f.recycler == nil || !f.recycler.memo.active || f.Occurs != 1 || f.Most > 1:
	case f.Len != nil && f.Len.only != nil:
		return &f.recycler.memo.payload(f.Len.only, f.Len.place).readings
	case f.Varint != nil:
		return &f.recycler.memo.numbers[numberClass(f.Varint.Values.Items[0].Value)]
	}
	return nil
}

const (
	// negativeClasses is the number of classes of negative numbers, and smallNumbers that of the numbers with a class of
	// their own.
	negativeClasses, smallNumbers = 2, 100

	// zigzagClasses is the number of classes with different evidence for zigzag encoding.
	zigzagClasses = uint64(len(oneZigzagOdds))

	// numberClasses is the number of classes of numbers.
	numberClasses = negativeClasses + smallNumbers + zigzagClasses*uint64(1+len(value.TimeUnits))
)

// numberClass returns the class of a varint. varintScalars returns the same for all numbers of one class, if each is
// the only value of its field.
func numberClass(v uint64) uint64 {
	switch {
	case int64(v) <= -1<<40:
		return 0
	case int64(v) < 0:
		return 1
	case v < smallNumbers:
		return negativeClasses + v
	}
	unit := 1 + slices.Index(value.TimeUnits[:], value.TimeUnit(v))
	return negativeClasses + smallNumbers + v%zigzagClasses + zigzagClasses*uint64(unit)
}
