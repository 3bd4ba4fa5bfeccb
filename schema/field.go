package schema

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A field is the evidence of one field number of one message.
type field struct {
	seen   int64 // messages with the field
	occurs int64 // occurrences in all
	most   int64 // occurrences in the message with the most
	now    int64 // occurrences in the message that is being read; 0 between messages

	// before holds the fields that began earlier in some message with this one:
	// two fields met if one is in the other's set, and a smaller number behind a
	// greater one tells a oneof, which the Go runtime writes last.
	before bitset

	varint  *varintStats
	fixed32 *fixedStats
	fixed64 *fixedStats
	len     *lenStats
	child   *message // payloads read as messages; nil once one could not be
	group   *message
	groups  int64
}

// addValue enters one occurrence, whose encoding without the tag is data.
func (f *field) addValue(e *Evidence, typ protowire.Type, data []byte, path []int32) {
	f.occurs++
	switch typ {
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(data)
		if f.varint == nil {
			f.varint = newVarintStats()
		}
		f.varint.add(v, n)
	case protowire.Fixed32Type:
		v, _ := protowire.ConsumeFixed32(data)
		if f.fixed32 == nil {
			f.fixed32 = &fixedStats{}
		}
		f.fixed32.add32(v)
	case protowire.Fixed64Type:
		v, _ := protowire.ConsumeFixed64(data)
		if f.fixed64 == nil {
			f.fixed64 = &fixedStats{}
		}
		f.fixed64.add64(v)
	case protowire.BytesType:
		payload, n := protowire.ConsumeBytes(data)
		if f.len == nil {
			f.len = newLenStats()
		}
		if n != len(payload)+protowire.SizeVarint(uint64(len(payload))) {
			f.len.Overlong++
		}
		f.addPayload(e, payload, path)
	case protowire.StartGroupType:
		f.groups++
		if f.group == nil {
			f.group = &message{}
		}
		body, _ := protowire.ConsumeGroup(protowire.Number(path[len(path)-1]), data)
		if _, ok := validate(body); ok {
			e.add(f.group, body, path)
		}
	}
}

// addPayload enters a length-delimited payload under every hypothesis.
func (f *field) addPayload(e *Evidence, payload []byte, path []int32) {
	l := f.len
	l.add(payload)
	if l.NotMessage {
		return
	}
	if _, ok := validate(payload); !ok {
		l.NotMessage = true
		e.count -= f.child.size()
		f.child = nil
		return
	}
	if f.child == nil {
		f.child = &message{}
	}
	e.add(f.child, payload, path)
}

// children returns the messages below the field.
func (f *field) children() []*message {
	var list []*message
	if f.child != nil {
		list = append(list, f.child)
	}
	if f.group != nil {
		list = append(list, f.group)
	}
	return list
}

// size counts the fields at and below m.
func (m *message) size() int {
	if m == nil {
		return 0
	}
	n := 0
	for _, number := range m.numbers() {
		n++
		for _, c := range m.get(number).children() {
			n += c.size()
		}
	}
	return n
}

// addEntries judges the repeated length-delimited fields of one message as maps.
//
// An entry is exactly a key, field 1, and a value, field 2: every encoder known
// writes both, also when they are zero, which an ordinary message never does.
func addEntries(m *message, lv *level) {
	if len(lv.entries) == 0 {
		return
	}
	slices.SortStableFunc(lv.entries, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	if lv.keys == nil {
		lv.keys = map[string]struct{}{}
	}
	for list := lv.entries; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].number == list[0].number {
			n++
		}
		if l := m.get(list[0].number).len; !l.NotMap {
			clear(lv.keys)
			l.addMap(list[:n], lv.keys)
		}
		list = list[n:]
	}
	if len(lv.keys) > 1024 {
		lv.keys = nil // clearing a grown map costs its whole size every time
	}
	clear(lv.entries)
}

// addMap judges the entries of one message; keys is empty.
func (l *lenStats) addMap(list []entry, keys map[string]struct{}) {
	var last []byte
	for i, en := range list {
		key, ok := entryKey(en.payload)
		if ok && len(list) > 1 {
			_, dup := keys[string(key)]
			keys[string(key)] = struct{}{}
			ok = !dup
		}
		if !ok {
			l.NotMap = true
			l.Ascending, l.Descending = 0, 0
			return
		}
		switch {
		case i == 0:
		case compareKeys(last, key) < 0:
			l.Ascending++
		default:
			l.Descending++
		}
		last = key
	}
}
