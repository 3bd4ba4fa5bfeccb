package kind

import (
	"slices"

	"unwire/decode/wire"
)

// maxNumber is the greatest field number.
const maxNumber = 1<<29 - 1

// scratch is memory that Add reuses between messages, one entry a level.
type scratch struct {
	path          [MaxDepth + 1]int32
	levels        []*level
	tree          wire.Tree // of the message that is being read
	root          string    // of the message that is being read
	sample        int64     // how many were read before it
	samplingLevel int       // of it

	// Where not nil: the field of each node of the tree that is being read.
	nodes []*Field
}

// A level holds the fields of the message that is being read at one depth.
type level struct {
	touched []*Field
	entries []entry
	keys    keySet
}

// An entry is one length-delimited occurrence, kept for the map hypothesis.
type entry struct {
	number int32
	key    []byte // as it is encoded
}

// addMessage enters the fields of node i of t. path is its place below its root.
func (e *Evidence) addMessage(m *Message, t *wire.Tree, i int32, path []int32) {
	depth := len(path)
	for len(e.scratch.levels) <= depth {
		e.scratch.levels = append(e.scratch.levels, &level{})
	}
	lv := e.scratch.levels[depth]
	lv.touched, lv.entries = lv.touched[:0], lv.entries[:0]
	m.Samples++
	var seen bitset
	for c := t.Nodes[i].First; c != wire.None; c = t.Nodes[c].Next {
		n := &t.Nodes[c]
		if n.Type == wire.Garbage || n.Number == 0 || n.Number > maxNumber {
			continue
		}
		number := int32(n.Number)
		f := m.Field(number)
		if f == nil {
			if f = e.newField(m, number, path); f == nil { // beyond the bounds
				continue
			}
		}
		if f.now == 0 {
			lv.touched = append(lv.touched, f)
			f.Before.or(&seen)
			if number < LowNumbers {
				seen.Set(number)
			}
		}
		f.now++
		if e.scratch.nodes != nil {
			e.scratch.nodes[c] = f
		}
		f.addNode(e, t, c, append(path, number))
		if n.Type == wire.Len && !f.Len.NotMap {
			lv.addEntry(f.Len, number, t, c)
		}
	}
	for _, f := range lv.touched { // some may be forgotten since, for want of room
		f.Seen++
		f.Most = max(f.Most, f.now)
		f.now = 0
	}
	addEntries(m, lv)
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
	if e.count++; e.count > 2*maxFields {
		e.trim()
		return m.Field(number)
	}
	return f
}
