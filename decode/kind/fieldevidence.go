package kind

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"unwire/decode/wire"
)

// A Field is the evidence of one field number of one message.
type Field struct {
	Seen   int64 // messages with the field
	Occurs int64 // occurrences in all
	Most   int64 // occurrences in the message with the most

	// Occurrences in the message that is being read; 0 between messages.
	now int64

	// Before holds the fields that began earlier in some message with this one:
	// two fields met if one is in the other's set, and a smaller number behind a
	// greater one tells a oneof, which the Go runtime writes last.
	Before bitset

	Varint  *Varints
	Fixed32 *fixeds
	Fixed64 *fixeds
	Len     *Payloads
	Child   *Message // payloads read as messages; nil once one could not be
	Group   *Message
	Groups  int64

	sampler stratifiedSampler
	left    bool   // it is below a payload that proved to be no message
	judged  judged // by the Reader whose evidence alone it is of
}

// addNode enters one occurrence, node i of t.
func (f *Field) addNode(e *Evidence, t *wire.Tree, i int32, path []int32) {
	f.Occurs++
	n := &t.Nodes[i]
	switch n.Type {
	case wire.Varint:
		if f.Varint == nil {
			f.Varint = newVarints()
		}
		f.Varint.addValue(t.Uint(i), n.End-n.Val)
	case wire.I32:
		if f.Fixed32 == nil {
			f.Fixed32 = &fixeds{}
		}
		f.Fixed32.add32(uint32(t.Uint(i)))
	case wire.I64:
		if f.Fixed64 == nil {
			f.Fixed64 = &fixeds{}
		}
		f.Fixed64.add64(t.Uint(i))
	case wire.Len:
		if f.Len == nil {
			f.Len = newPayloads()
		}
		f.addPayload(e, t, i, path)
	case wire.StartGroup:
		f.Groups++
		if f.Group == nil {
			f.Group = &Message{}
		}
		e.addMessage(f.Group, t, i, path)
	}
}

// addPayload enters a length-delimited payload under every hypothesis. One that
// was not followed for its depth may be a message, of unknown fields.
func (f *Field) addPayload(e *Evidence, t *wire.Tree, i int32, path []int32) {
	n := &t.Nodes[i]
	l := f.Len
	p := t.Data[n.Val:n.End]
	if n.Overlong && n.Val-n.Tag != wire.SizeVarint(uint64(len(p))) {
		l.Overlong++
	}
	weight := int64(1)
	if len(p) > 0 {
		weight = f.sampler.weight(e.scratch.sample)
	}
	l.addPayload(p, n.First != wire.None, weight, e.scratch.samplingLevel)
	if l.NotMessage {
		return
	}
	if n.First == wire.None && len(p) > 0 && n.Err == nil {
		l.NotMessage = true
		e.count -= f.Child.leave()
		f.Child = nil
		return
	}
	if f.Child == nil {
		f.Child = &Message{}
	}
	e.addMessage(f.Child, t, i, path)
}

// Children returns the messages below the field.
func (f *Field) Children() []*Message {
	var list []*Message
	if f.Child != nil {
		list = append(list, f.Child)
	}
	if f.Group != nil {
		list = append(list, f.Group)
	}
	return list
}

// leave counts the fields at and below m, which are in no evidence any more.
func (m *Message) leave() int {
	if m == nil {
		return 0
	}
	n := 0
	for _, number := range m.Numbers() {
		f := m.Field(number)
		f.left = true
		n++
		for _, c := range f.Children() {
			n += c.leave()
		}
	}
	return n
}

// addEntry keeps node i of t for addEntries, or finds that it is no entry.
//
// An entry is exactly a key, field 1, and a value, field 2: every encoder known
// writes both, also when they are zero, which an ordinary message never does.
func (lv *level) addEntry(l *Payloads, number int32, t *wire.Tree, i int32) {
	n := &t.Nodes[i]
	if n.First == wire.None {
		key, ok := entryKey(t.Data[n.Val:n.End]) // it was perhaps not followed
		if !ok {
			l.notMap()
			return
		}
		lv.entries = append(lv.entries, entry{number, key})
		return
	}
	key := &t.Nodes[n.First]
	if key.Number != 1 || key.Next == wire.None || t.Nodes[key.Next].Number != 2 || t.Nodes[key.Next].Next != wire.None {
		l.notMap()
		return
	}
	lv.entries = append(lv.entries, entry{number, t.Data[key.Tag:key.End]})
}

// addEntries judges the repeated length-delimited fields of one message as maps.
func addEntries(m *Message, lv *level) {
	if len(lv.entries) == 0 {
		return
	}
	for i := 1; i < len(lv.entries); i++ {
		if lv.entries[i].number < lv.entries[i-1].number {
			slices.SortStableFunc(lv.entries, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
			break
		}
	}
	for list := lv.entries; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].number == list[0].number {
			n++
		}
		// Nil: forgotten since.
		if f := m.Field(list[0].number); f != nil && !f.Len.NotMap {
			f.Len.addMap(list[:n], &lv.keys)
		}
		list = list[n:]
	}
	clear(lv.entries)
}

// addMap judges the entries of one message.
func (l *Payloads) addMap(list []entry, keys *keySet) {
	defer keys.reset()
	var last []byte
	for i, en := range list {
		key := en.key
		if len(list) > 1 && !keys.addKey(key) {
			l.notMap()
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

// A keySet is the keys of one message's entries: a list, and from some length on a table
// of places in it, one more than each, by hash.
type keySet struct {
	list  [][]byte
	slots []int32 // twice as many as keys, or more
	seed  maphash.Seed
}

// fewKeys are compared one by one.
const fewKeys = 8

func (s *keySet) reset() {
	clear(s.list)
	s.list = s.list[:0]
	if len(s.slots) > 4096 {
		s.slots = nil // clearing a grown table costs its whole size every time
	}
	s.slots = s.slots[:0]
}

// addKey reports whether the key is a new one.
func (s *keySet) addKey(key []byte) bool {
	if len(s.list) < fewKeys {
		for _, k := range s.list {
			if bytes.Equal(k, key) {
				return false
			}
		}
		s.list = append(s.list, key)
		return true
	}
	if 2*len(s.list) >= len(s.slots) {
		s.grow()
	}
	at := s.place(key)
	if s.slots[at] != 0 {
		return false
	}
	s.list = append(s.list, key)
	s.slots[at] = int32(len(s.list))
	return true
}

// grow makes the table anew, with room for as many keys again.
func (s *keySet) grow() {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	size := 64
	for size < 4*len(s.list) {
		size *= 2
	}
	if size > cap(s.slots) {
		s.slots = make([]int32, size)
	} else {
		s.slots = s.slots[:size]
		clear(s.slots)
	}
	for i, k := range s.list {
		s.slots[s.place(k)] = int32(i + 1)
	}
}

// place is where a key is in the table, or is to be.
func (s *keySet) place(key []byte) int {
	at := int(maphash.Bytes(s.seed, key)) & (len(s.slots) - 1)
	for s.slots[at] != 0 && !bytes.Equal(s.list[s.slots[at]-1], key) {
		at = (at + 1) & (len(s.slots) - 1)
	}
	return at
}
