package es

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// The fields of a map's entry, which no definition can choose.
const (
	mapKey   int32 = 1
	mapValue int32 = 2
)

// hiddenCanary is a canary behind one byte more, which makes it the end of a
// longer tag of a varint: who reads tags from that byte on passes over it.
func hiddenCanary(b []byte, index int, s slot) []byte {
	return appendCanary(append(b, 0xF8), index, s)
}

// appendEntryTest stumbles for each class that a key or a value can have, in an
// entry that is read by code of its own: that knows two numbers, and skips
// nothing behind the tag of another one.
//
// Shape: 4 and 8 bytes end before canaries that are hidden from the others; text
// ends behind ten bytes. What is left reads the ten as a varint, and goes on
// with tags of the entry, or as a length, and goes on with tags of a message,
// where the first is skipped with its value.
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
	return appendCanary(b, index, slotLen) // ten bytes of text end here
}

// controlEntry makes sure that a map's entry is read as appendEntryTest expects:
// a tag of a number that no entry has is passed over, and what follows it is
// read as the next tag.
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

// runEntry finds the classes of a map's key and value: a request each, and one
// for the control.
//
// Errors: a stopError if an answer does not follow from what was asked; then
// nothing is claimed of the entry.
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

// entryCanHave reports whether a key or a value may be of a class.
func entryCanHave(n int32, s slot) bool {
	switch s {
	case slotFixed32, slotFixed64, slotVarint, slotLen:
		return true
	case slotMessage:
		return n == mapValue
	}
	return false
}
