package kind

import (
	"cmp"
	"slices"

	"unwire/decode/kind/mapkey"
	"unwire/decode/kind/numberset"
	"unwire/decode/wire"
)

// A Field holds the statistics of one field number of a message type.
type Field struct {
	// Seen is the number of messages that contain the field.
	Seen int64

	// Occurs is the number of occurrences of the field in all messages.
	Occurs int64

	// Most is the largest number of occurrences of the field in one message.
	Most int64

	// now counts the occurrences in the current message; 0 between messages.
	now int64

	// Before has the numbers of fields that preceded this one in some message. Two fields occurred together if one
	// is in the other's set. A greater number before a smaller one suggests a oneof, which Go's encoder writes
	// last.
	Before numberset.Set

	// Varint has the statistics of the field's varint values; nil if there are none.
	Varint *Varints

	// Fixed32 has the statistics of the field's values of wire type I32 (4 bytes); nil if there are none.
	Fixed32 *fixeds

	// Fixed64 has the statistics of the field's values of wire type I64 (8 bytes); nil if there are none.
	Fixed64 *fixeds

	// Len has the statistics of the field's length-delimited values; nil if there are none.
	Len *Payloads

	// Child holds the statistics of the field's payloads as messages; nil once a payload could not be
	// parsed as a message.
	Child *Message

	// Group has the statistics of the messages in the field's groups (wire types SGROUP and EGROUP); nil if there
	// are none.
	Group *Message

	// Groups is the number of the field's groups.
	Groups int64

	// sampler selects the payloads whose description length is computed.
	sampler stratifiedSampler

	// dropped means that the field is below a payload that proved not to be a message.
	dropped bool

	// single means that these are the statistics of one node, without other occurrences of its field.
	single bool

	// recycler provided the memory of the statistics. It is nil for evidence that is kept.
	recycler *recycler

	// judged caches the inferred types, for a Reader that uses only this evidence.
	judged inferredTypes
}

// addNode adds one occurrence of the field, which is node i of t.
func (f *Field) addNode(e *Evidence, t *wire.Tree, i int32, path []int32) {
	f.Occurs++
	n := &t.Nodes[i]
	// Evidence is collected by wire type; a field may occur with several.
	switch n.Type {
	case wire.Varint:
		if f.Varint == nil {
			f.Varint = e.scratch.recycler.newVarints()
		}
		f.Varint.addValue(t.Uint(i), n.End-n.Val)
	case wire.I32:
		if f.Fixed32 == nil {
			f.Fixed32 = e.scratch.recycler.newFixeds()
		}
		f.Fixed32.add32(uint32(t.Uint(i)))
	case wire.I64:
		if f.Fixed64 == nil {
			f.Fixed64 = e.scratch.recycler.newFixeds()
		}
		f.Fixed64.add64(t.Uint(i))
	case wire.Len:
		if f.Len == nil {
			f.Len = e.scratch.recycler.newPayloads()
		}
		f.addPayload(e, t, i, path)
	case wire.StartGroup:
		f.Groups++
		if f.Group == nil {
			f.Group = e.scratch.recycler.newMessage()
		}
		e.addMessage(f.Group, t, i, path)
	}
}

// addPayload adds node i, a length-delimited occurrence of the field, to the statistics of payloads and of
// messages. path are the field numbers that lead to it. A payload that was not parsed because of its depth may be a
// message, too.
func (f *Field) addPayload(e *Evidence, t *wire.Tree, i int32, path []int32) {
	n := &t.Nodes[i]
	l := f.Len
	p := t.Data[n.Val:n.End]
	if n.Overlong && n.Val-n.TagEnd != wire.SizeVarint(uint64(len(p))) {
		l.Overlong++
	}

	// Empty payloads are cheap, so they are always scored.
	weight := int64(1)
	if len(p) > 0 {
		weight = f.sampler.weight(e.scratch.sample)
	}
	l.addPayload(p, n.First != wire.None, weight, e.scratch.samplingLevel)
	if l.only != nil && (!n.Sound() || len(path) > MaxDepth-maxRemembered/2) {
		// What is inferred depends on the depth as well.
		l.complete()
		l.only = nil
	}
	if l.NotMessage {
		return
	}
	if n.First == wire.None && len(p) > 0 && n.Sound() {
		l.NotMessage = true
		e.count -= f.Child.markDropped()
		f.Child = nil
		return
	}
	if f.Child == nil {
		f.Child = e.scratch.recycler.newMessage()
	}
	e.addMessage(f.Child, t, i, path)
}

// Children returns the message types below the field: that of its payloads and that of its groups, if any.
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

// markDropped marks all fields below m as dropped, so that they are not used any more, and returns their number.
func (m *Message) markDropped() int {
	if m == nil {
		return 0
	}
	n := 0
	for _, number := range m.Numbers() {
		f := m.Field(number)
		f.dropped = true
		n++
		for _, c := range f.Children() {
			n += c.markDropped()
		}
	}
	return n
}

// addEntry records node i of t as a possible map entry, or notes that the field is not a map. An entry consists
// of a key (field 1) and a value (field 2). Common encoders write both even if they are zero, which they do not
// for ordinary messages.
func (lv *nestingLevel) addEntry(l *Payloads, number int32, t *wire.Tree, i int32) {
	n := &t.Nodes[i]
	if n.First == wire.None {
		// The payload may not have been parsed because of its depth.
		key, ok := mapkey.Parse(t.Data[n.Val:n.End])
		if !ok {
			l.notMap()
			return
		}
		lv.entries = append(lv.entries, mapEntry{number, key})
		return
	}
	key := &t.Nodes[n.First]
	if key.Number != 1 || key.Next == wire.None || t.Nodes[key.Next].Number != 2 || t.Nodes[key.Next].Next != wire.None {
		l.notMap()
		return
	}
	lv.entries = append(lv.entries, mapEntry{number, t.Data[key.TagEnd:key.End]})
}

// addEntries examines whether the fields of one message whose occurrences are in lv.entries may be maps.
func addEntries(m *Message, lv *nestingLevel) {
	if len(lv.entries) == 0 {
		return
	}
	// Group the entries by field.
	for i := 1; i < len(lv.entries); i++ {
		if lv.entries[i].number < lv.entries[i-1].number {
			slices.SortStableFunc(lv.entries, func(a, b mapEntry) int { return cmp.Compare(a.number, b.number) })
			break
		}
	}
	for list := lv.entries; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].number == list[0].number {
			n++
		}
		// The field may have been dropped meanwhile.
		if f := m.Field(list[0].number); f != nil && !f.Len.NotMap {
			f.Len.addMap(list[:n], &lv.keys)
		}
		list = list[n:]
	}
	clear(lv.entries)
}

// addMap examines the occurrences of a field in one message as map entries: a duplicate key refutes that the field
// is a map. keys is empty before and after.
func (l *Payloads) addMap(list []mapEntry, keys *mapkey.Set) {
	defer keys.Reset()
	var last []byte
	for i, en := range list {
		key := en.key
		if len(list) > 1 && !keys.Add(key) {
			l.notMap()
			return
		}
		if i > 0 {
			l.KeyOrders.AddPair(last, key)
		}
		switch {
		case i == 0:
		case mapkey.Compare(last, key) < 0:
			l.Ascending++
		default:
			l.Descending++
		}
		last = key
	}
}
