package es

import (
	"fmt"
	"math"

	"unwire/replay/probe"
)

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
	// below it a candidate's own message may well use the number
	nearNumbers    = 64
	nearReadings   = 6
	finalReadings  = 40
	finalAbsent    = 16 // numbers from 1 that are read though unknown
	maxPayloadSize = 512 << 10
	candidateSize  = 60 // about what the canaries of a candidate take
)

// readings are those that tell candidate n's own message from the outer one, of
// the numbers that are known by the time n is met: n and those above.
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

// allReadings are those of all that is known once nothing is left to find.
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

// firstPayload is what is asked first.
func (m *message) firstPayload() []byte {
	return m.payload(0, m.ahead(m.fitting(m.batch(m.numbers.Below(math.MaxInt32)))))
}

// fitting is as much of a batch as the server takes in one message.
func (m *message) fitting(b batch) batch {
	for m.small() && len(b.numbers) > 1 && len(m.payload(0, b)) > m.server.sizeLimit() {
		b = b.cut(len(b.numbers) * 3 / 4)
	}
	return b
}

// A batch is a run of candidates, from the highest number down.
type batch struct {
	numbers []int32
	next    int32  // the first number that is not in it; 0: nothing is below it
	looks   []look // what is asked about behind candidates
	base    int    // the index of the first of them
}

// has reports whether a canary is of one of its candidates, or of what is asked
// about behind one.
func (b batch) has(g sighting) bool {
	return g.canary && g.slot != slotEnd && (g.index < len(b.numbers) || g.index >= b.base && g.index-b.base < len(b.looks))
}

func (b batch) last() bool { return b.next == 0 }

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

// maxPayload is how large the tests of a batch are.
func (m *message) maxPayload() int {
	if m.small() {
		return m.server.sizeLimit() - smallRest
	}
	return maxPayloadSize
}

// smallRest is for what is around a batch in small messages.
const smallRest = 900

// small reports whether the server takes small messages only: then nothing is
// asked ahead, nested deeply, or confirmed, and what only that would tell is
// not said.
func (m *message) small() bool {
	return m.server.sizeLimit() > 0 && m.server.sizeLimit() < maxPayloadSize
}

// cut is the first n numbers of a batch.
func (b batch) cut(n int) batch {
	if n < len(b.numbers) {
		b.numbers, b.next = b.numbers[:n], b.numbers[n]
	}
	return b
}

// about says what a batch asks about.
func (b batch) about() string {
	if len(b.numbers) == 0 {
		return "what was found"
	}
	return fmt.Sprintf("numbers %d to %d", b.numbers[0], b.numbers[len(b.numbers)-1])
}

// candidatesForMessage are the varints that the last part of a payload confirms.
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

// payload lays the canaries of a batch, then of what is to be confirmed when
// nothing of the batch is there, then the end.
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

// levels is how deep a payload goes so that the parser gives up.
func (m *message) levels() int {
	if m.server.countsLevels {
		return 2 * levelLimit
	}
	return tooDeep
}

// measures reports whether a payload ends with groups that are too deep for a
// parser that counts levels, as measure wants to know: nothing stumbled before them.
func (m *message) measures(deep int32, batch batch) bool {
	return batch.last() && deep == 0 && len(m.path) == 0 && len(m.suspects) == 0 && !m.server.countsLevels && !m.server.levelsUncounted
}

// whole is a request around the message. It ends behind it, too, so that no
// parser takes it even where the path leads to no message.
func (m *message) whole(message []byte) []byte {
	return appendEnd(probe.Wrap(m.path, message, m.groups...), maxBatch-1)
}
