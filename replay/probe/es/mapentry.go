package es

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// The field numbers of a map entry, which protobuf prescribes.
const (
	mapKey   int32 = 1
	mapValue int32 = 2
)

// hiddenCanary appends a canary with one byte before it. A parser that starts at that byte reads both
// as one longer varint tag, and does not stop at the canary.
func hiddenCanary(b []byte, index int, s slot) []byte {
	return appendCanary(append(b, 0xF8), index, s)
}

// appendEntryTest appends a test of the map entry's field n, which has a canary for each class that a
// key or value can have. The code that reads entries knows two numbers, and skips nothing after an
// unknown tag.
//
// Shape: 4 and 8 bytes end before canaries that are hidden from the other readings; a string ends after
// ten bytes. The remaining classes read the ten as a varint and continue with tags of the entry, or as
// a length and continue with tags of a message, in which the first tag is skipped with its value.
func appendEntryTest(b []byte, n int32, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 0, 0xF8, 0x01)
	b = hiddenCanary(b, index, slotFixed32)
	b = hiddenCanary(b, index, slotFixed64)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.VarintType)
	b = append(b, 10)
	b = append(b, skip4...)
	b = fill(appendCanary(b, index, slotVarint), 1)
	b = appendCanary(b, index, slotMessage)
	// ten bytes of text end here
	return appendCanary(b, index, slotLen)
}

// controlEntry verifies that the runtime reads map entries as appendEntryTest assumes: it ignores an
// unknown tag and reads the following bytes as the next tag.
func (m *message) controlEntry(ctx context.Context) error {
	b := appendCanary(append([]byte{}, skip4...), controlIndex, slotMap)
	a, err := m.server.Ask(ctx, m.at()+": a number that cannot exist", m.whole(appendEnd(b, m.id(0))))
	if err != nil {
		return err
	}
	if g := m.read(a); !g.canary || g.slot != slotMap || g.index != controlIndex {
		return probe.OracleOff(m.path, a)
	}
	return nil
}

// runEntry determines the classes of a map's key and value, with one request for each and one for the
// control.
//
// Errors: a stopError if a response does not fit the test. Nothing is reported about the entry then.
func (m *message) runEntry(ctx context.Context) error {
	var asked []int32
	for _, n := range []int32{mapValue, mapKey} {
		if m.numbers.Below(n) == n {
			asked = append(asked, n)
		}
	}
	if len(asked) > 0 {
		if err := m.controlEntry(ctx); err != nil {
			return err
		}
	}

	// Each answer names one of the two; the next payload leaves it out.
	for len(m.found) < len(asked) {
		m.asked++
		var b []byte
		for i, n := range asked {
			if m.found[n] == nil {
				b = appendEntryTest(b, n, m.id(i))
			}
		}
		a, err := m.server.Ask(ctx, fmt.Sprintf("%s: keys and values", m.at()), m.whole(appendEnd(b, m.id(len(asked)))))
		if err != nil {
			return err
		}
		g := m.read(a)
		if !g.canary || g.index >= len(asked) || m.found[asked[g.index]] != nil || !entryCanHave(asked[g.index], g.slot) {
			m.found = map[int32]*field{}
			return probe.OracleOff(m.path, a)
		}
		m.enter(asked[g.index], g.slot, a).level = g.slot == slotVarint
	}
	m.complete = true
	return nil
}

// entryCanHave reports whether field n of a map entry, key or value, may be of class s.
func entryCanHave(n int32, s slot) bool {
	switch s {
	case slotFixed32, slotFixed64, slotVarint, slotLen:
		return true
	case slotMessage:
		return n == mapValue
	}
	return false
}
