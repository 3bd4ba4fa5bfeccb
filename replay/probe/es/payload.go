package es

import (
	"fmt"
	"math"

	"unwire/replay/probe"
)

// readingOf returns how the message reads field n; absent if it was not found. ok is false if this is
// not known, as for groups.
func (m *message) readingOf(n int32) (reading, bool) {
	f := m.found[n]
	if f == nil {
		return reading{n, absent}, true
	}
	if f.group {
		return reading{}, false
	}
	as, ok := map[slot]consumption{
		slotFixed32: asFixed32, slotFixed64: asFixed64, slotLen: asLen,
		slotVarint: asVarint, slotMessage: asVarint, slotPacked: asVarint,
	}[f.slot]
	return reading{n, as}, ok
}

const (
	// nearNumbers is the distance from a candidate within which the fields of its own message may have
	// the same numbers.
	nearNumbers   = 64
	nearReadings  = 6
	finalReadings = 40
	// finalAbsent is how many unknown numbers, from 1, are read.
	finalAbsent    = 16
	maxPayloadSize = 512 << 10
	// candidateSize is roughly the size of a candidate's canaries in bytes.
	candidateSize = 60
)

// readings returns how the outer message reads some fields, for distinguishing it from a message in
// field n. It uses only numbers whose type is known when n is probed: n and higher ones.
func (m *message) readings(n int32) []reading {
	out := []reading{{n, asVarint}}
	if n > nearNumbers {
		return out
	}
	for k := n + 1; k <= n+nearNumbers && len(out) <= nearReadings; k++ {
		if m.numbers.Below(k) != k {
			continue
		}
		if r, ok := m.readingOf(k); ok && (r.as != absent || k <= n+2) && !m.excluded[k] {
			out = append(out, r)
		}
	}
	return out
}

// allReadings returns how the message reads its found fields, once all numbers were probed.
func (m *message) allReadings() []reading {
	var out []reading
	for _, n := range m.order() {
		if r, ok := m.readingOf(n); ok && len(out) < finalReadings {
			out = append(out, r)
		}
	}
	for n := int32(1); n <= finalAbsent; n++ {
		if m.numbers.Below(n) == n && m.found[n] == nil && !m.excluded[n] {
			out = append(out, reading{n, absent})
		}
	}
	return out
}

// firstPayload returns the protobuf message of the first request.
func (m *message) firstPayload() []byte {
	return m.payload(0, m.ahead(m.fitting(m.batch(m.numbers.Below(math.MaxInt32)))))
}

// fitting returns the beginning of a batch (the field numbers tested in one request) that fits into the
// largest message which the server accepts.
func (m *message) fitting(b batch) batch {
	for m.small() && len(b.numbers) > 1 && len(m.payload(0, b)) > m.server.sizeLimit() {
		b = b.cut(len(b.numbers) * 3 / 4)
	}
	return b
}

// A batch has the field numbers (candidates) that are tested in one request, from the highest down.
type batch struct {
	// numbers are the field numbers to test, in descending order.
	numbers []int32
	// next is the first number after the batch, i.e. the highest one below it; 0 if there is none.
	next int32

	// looks are pairs of field numbers that this request tests together: the second is parsed only if the first is
	// a string or a number of fixed size.
	looks []look
	// base is the canary index of the first pair in looks.
	base int
}

// has reports whether the canary that the server quoted belongs to the test of a field number in the
// batch.
func (b batch) has(g sighting) bool {
	return g.canary && g.slot != slotEnd && (g.index < len(b.numbers) || g.index >= b.base && g.index-b.base < len(b.looks))
}

// last reports whether no field numbers are left after the batch.
func (b batch) last() bool { return b.next == 0 }

// batch returns the next batch, which begins with the highest untested number that is at most high.
func (m *message) batch(high int32) batch {
	var b batch
	n := m.numbers.Below(high)
	for size := 0; n > 0 && len(b.numbers) < maxBatch/2 && size < m.maxPayload(); n = m.numbers.Below(n - 1) {
		if m.found[n] == nil && !m.excluded[n] {
			b.numbers = append(b.numbers, n)
			size += candidateSize
		}
	}
	b.next = n
	return b
}

// maxPayload returns the largest size, in bytes, of the tests of a batch, i.e. of one request.
func (m *message) maxPayload() int {
	if m.small() {
		return m.server.sizeLimit() - smallRest
	}
	return maxPayloadSize
}

// smallRest is the number of bytes reserved for everything except the batch in small messages.
const smallRest = 900

// small reports whether the server accepts only small messages. Lookahead, deep nesting and
// confirmations are left out then, and the result lacks what they would reveal.
func (m *message) small() bool {
	return m.server.sizeLimit() > 0 && m.server.sizeLimit() < maxPayloadSize
}

// cut returns a batch with only the first n of its field numbers.
func (b batch) cut(n int) batch {
	if n < len(b.numbers) {
		b.numbers, b.next = b.numbers[:n], b.numbers[n]
	}
	return b
}

// about describes the batch in the journal.
func (b batch) about() string {
	if len(b.numbers) == 0 {
		return "what was found"
	}
	return fmt.Sprintf("numbers %d to %d", b.numbers[0], b.numbers[len(b.numbers)-1])
}

// candidatesForMessage returns the fields found to be varints that may be messages, which the last part
// of a payload tests.
func (m *message) candidatesForMessage() []int32 {
	var out []int32
	if m.small() {
		return nil
	}
	for _, n := range m.order() {
		if m.found[n].slot == slotVarint && !m.hints[n].Varint {
			out = append(out, n)
		}
	}
	return out
}

// payload returns the protobuf message for one request. It contains tests for the field numbers of a
// batch, then tests that confirm varints, then an end that no parser accepts. deep is a field that is
// tested by deep nesting; 0 for none.
func (m *message) payload(deep int32, batch batch) []byte {
	b := appendControl(nil)
	if m.assumed != nil {
		b = appendGroupAssertion(b, m.assumed.number)
	}
	if deep != 0 {
		b = appendDeep(b, deep, m.levels())
	}
	count := len(batch.numbers)
	for i, n := range batch.numbers {
		if len(batch.looks) > 0 && i < lookFrom {
			b = appendFixedJumps(b, n, m.place(batch, i, slotFixed32), m.place(batch, i, slotFixed64))
			b = appendLenJump(b, n, m.id(i), m.place(batch, i, slotLen))
		} else {
			b = appendFixedTest(b, n, m.id(i))
			b = appendLenTest(b, n, m.id(i))
		}
		b = appendVarintTest(b, n, m.id(i), m.readings(n))
	}

	// The confirmations are reached only if no candidate of the last batch exists.
	if batch.last() {
		readings := m.allReadings()
		for i, n := range m.candidatesForMessage() {
			if i+count+1 < controlIndex {
				b = appendConfirmation(b, n, m.id(count+1+i), readings)
			}
		}
	}
	if m.measures(deep, batch) {
		b = appendGroups(b, levelLimit)
	}
	return m.whole(appendEnd(b, m.id(count)))
}

// levels returns the nesting depth of the groups at which the parser stops.
func (m *message) levels() int {
	if m.server.countsLevels {
		return 2 * levelLimit
	}
	return tooDeep
}

// measures reports whether the payload for a batch ends with groups that are nested too deeply for a
// parser that limits nesting. Only a parser that nothing before them has stopped reaches the groups.
func (m *message) measures(deep int32, batch batch) bool {
	return batch.last() && deep == 0 && len(m.path) == 0 && len(m.suspects) == 0 && !m.server.countsLevels && !m.server.levelsUncounted
}

// whole wraps the message into a request. The request ends with a canary of its own, so that no parser
// accepts it even if the path does not lead to a message.
func (m *message) whole(message []byte) []byte {
	return appendEnd(probe.Wrap(m.path, message, m.groups...), maxBatch-1)
}
