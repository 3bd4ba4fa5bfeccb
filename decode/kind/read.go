package kind

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// scratch is memory that Add reuses between messages, one entry a level.
type scratch struct {
	levels []level
	root   string // of the message that is being read
}

// A level holds the fields of the message that is being read at one depth.
type level struct {
	touched []int32
	entries []entry
	keys    map[string]struct{}
}

// An entry is one length-delimited occurrence, kept for the map hypothesis.
type entry struct {
	number  int32
	payload []byte
}

// add enters a valid message. path is its place below its root.
func (e *Evidence) add(m *Message, data []byte, path []int32) {
	depth := len(path)
	for len(e.scratch.levels) <= depth {
		e.scratch.levels = append(e.scratch.levels, level{})
	}
	lv := e.scratch.levels[depth]
	lv.touched, lv.entries = lv.touched[:0], lv.entries[:0]
	m.Samples++
	var seen Bitset
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		data = data[n:]
		f := m.Field(int32(number))
		if f == nil {
			f = e.newField(m, int32(number), path)
		}
		size := protowire.ConsumeFieldValue(number, typ, data)
		if f == nil { // beyond the bounds
			data = data[size:]
			continue
		}
		if f.now == 0 {
			lv.touched = append(lv.touched, int32(number))
			f.Before.or(&seen)
			if number < LowNumbers {
				seen.Set(int32(number))
			}
		}
		f.now++
		f.addValue(e, typ, data[:size], append(path, int32(number)))
		if typ == protowire.BytesType && !f.Len.NotMap {
			payload, _ := protowire.ConsumeBytes(data)
			lv.entries = append(lv.entries, entry{int32(number), payload})
		}
		data = data[size:]
	}
	for _, n := range lv.touched {
		f := m.Field(n)
		f.Seen++
		f.Most = max(f.Most, f.now)
		f.now = 0
	}
	addEntries(m, &lv)
	e.scratch.levels[depth] = lv
}

// newField makes room for a field, or returns nil where there is none.
func (e *Evidence) newField(m *Message, number int32, path []int32) *Field {
	if len(path) >= MaxDepth {
		return nil
	}
	if e.cut != nil {
		k := key{append(slices.Clone(path), number), e.scratch.root}
		if k.compare(*e.cut) > 0 {
			return nil
		}
	}
	f := &Field{}
	m.set(number, f)
	e.count++
	return f
}

// validate reports whether data is a message in the way the Go runtime accepts
// one, and where it stops being one. Payloads are not looked into.
func validate(data []byte) (at int, ok bool) {
	size := len(data)
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		if n < 0 || number < 1 || number > protowire.MaxValidNumber || typ == protowire.EndGroupType {
			return size - len(data), false
		}
		v := protowire.ConsumeFieldValue(number, typ, data[n:])
		if v < 0 {
			return size - len(data), false
		}
		data = data[n+v:]
	}
	return size, true
}
