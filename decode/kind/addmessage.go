package kind

import (
	"math"
	"slices"

	"unwire/decode/kind/mapkey"
	"unwire/decode/kind/numberset"
	"unwire/decode/wire"
)

// maxNumber is the highest field number of protobuf.
const maxNumber = 1<<29 - 1

// scratch is memory that addMessage reuses between messages. levels has one entry per level of nesting.
type scratch struct {
	// path are the field numbers that lead to the current field, from the outermost message.
	path [MaxDepth + 1]int32

	// levels has, for each level of nested messages, the state of counting fields in the message at that level.
	levels []*nestingLevel

	// tree is the parsed message that is being added.
	tree wire.Tree

	// root is the name of the message's type.
	root string

	// sample is the number of messages of the type that were added before.
	sample int64

	// samplingLevel is the message's level for coordinated sampling: a hash decides which messages are kept as
	// samples; see the function samplingLevel.
	samplingLevel int

	// nodes, if not nil, receives for each node of the tree the Field whose statistics it belongs to.
	nodes []*Field

	// recycler provides the memory of new statistics. It is nil for evidence that is kept.
	recycler *recycler
}

// A recycler provides empty statistics of one message after another, and reuses their memory. A Reader of small
// messages would spend most of its time on allocating them. A nil recycler allocates statistics that are kept.
type recycler struct {
	messages slab[Message]
	fields   slab[Field]
	payloads slab[Payloads]
	varints  slab[Varints]
	fixeds   slab[fixeds]
	tops     slab[histogram]
	sketches slab[sketch]

	// memo has what was inferred from single values of earlier messages.
	memo memo
}

// A slab has the values of one type that a recycler provided.
type slab[T any] struct {
	// values are the values that can be provided, and used is the number of those in use.
	values []*T
	used   int
}

// maxRecycled is the maximum number of values of one type whose memory is kept for the next message. Larger
// messages are rare, and their memory should not be kept.
const maxRecycled = 512

// next returns a value, which contains what it contained when it was in use before.
func (s *slab[T]) next() *T {
	if s.used == maxRecycled {
		return new(T)
	}
	if s.used == len(s.values) {
		s.values = append(s.values, new(T))
	}
	s.used++
	return s.values[s.used-1]
}

// reset reclaims all statistics. nodes is the number of nodes of the next message.
func (m *recycler) reset(nodes int) {
	m.messages.used, m.fields.used, m.payloads.used, m.varints.used = 0, 0, 0, 0
	m.fixeds.used, m.tops.used, m.sketches.used = 0, 0, 0
	m.memo.nextMessage(nodes)
}

// newMessage returns statistics of a message type without messages. The slices of recycled statistics are emptied,
// but keep their memory.
func (m *recycler) newMessage() *Message {
	if m == nil {
		return &Message{}
	}
	v := m.messages.next()
	clear(v.low)
	*v = Message{low: v.low[:0]}
	return v
}

// newField returns statistics of a field without values.
func (m *recycler) newField() *Field {
	if m == nil {
		return &Field{}
	}
	f := m.fields.next()
	*f = Field{judged: inferredTypes{list: f.judged.list[:0]}, recycler: m}
	return f
}

// newPayloads returns statistics without payloads.
func (m *recycler) newPayloads() *Payloads {
	if m == nil {
		return newPayloads()
	}
	l := m.payloads.next()
	*l = Payloads{recycler: m, tested: l.tested[:0], Prefix: l.Prefix[:0], Ones: l.Ones[:0], Anys: l.Anys[:0]}
	l.Shortest, l.Values = math.MaxInt64, m.newSketch()
	return l
}

// newVarints returns statistics without values.
func (m *recycler) newVarints() *Varints {
	if m == nil {
		return newVarints()
	}
	s := m.newElements()
	s.Values = m.newSketch()
	return s
}

// newElements returns empty statistics for the elements of packed fields.
func (m *recycler) newElements() *Varints {
	if m == nil {
		return newElements()
	}
	s := m.varints.next()
	*s = Varints{Min: math.MaxUint64}
	return s
}

// newFixeds returns statistics without fixed-width values.
func (m *recycler) newFixeds() *fixeds {
	if m == nil {
		return &fixeds{}
	}
	s := m.fixeds.next()
	*s = fixeds{Values: m.newSketch()}
	return s
}

// newTops returns an empty histogram of the top bits of numbers.
func (m *recycler) newTops() *histogram {
	if m == nil {
		return &histogram{}
	}
	h := m.tops.next()
	*h = histogram{}
	return h
}

// newSketch returns a sketch without values. m must not be nil.
func (m *recycler) newSketch() *sketch {
	s := m.sketches.next()
	*s = sketch{Items: s.Items[:0]}
	return s
}

// A nestingLevel has the state of addMessage for one level of nesting.
type nestingLevel struct {
	// touched are the fields that occurred in the message at this level.
	touched []*Field

	// entries are the embedded messages at this level that may be entries of a map.
	entries []mapEntry

	// keys detects duplicate map keys.
	keys mapkey.Set
}

// A mapEntry is an occurrence of a length-delimited field that may be an entry of a map.
type mapEntry struct {
	// number is the field's number.
	number int32

	// key is the encoded key of the map entry.
	key []byte
}

// addMessage adds the fields inside node i of t to the statistics of message type m. path has the field numbers
// from the root to the node.
func (e *Evidence) addMessage(m *Message, t *wire.Tree, i int32, path []int32) {
	depth := len(path)
	for len(e.scratch.levels) <= depth {
		e.scratch.levels = append(e.scratch.levels, &nestingLevel{})
	}

	// Nested messages use levels of their own, so their state does not mix.
	lv := e.scratch.levels[depth]
	lv.touched, lv.entries = lv.touched[:0], lv.entries[:0]
	m.Samples++
	var seen numberset.Set
	for c := t.Nodes[i].First; c != wire.None; c = t.Nodes[c].Next {
		// Malformed fields are no evidence.
		n := &t.Nodes[c]
		if n.Type == wire.Garbage || n.Number == 0 || n.Number > maxNumber {
			continue
		}
		number := int32(n.Number)
		f := m.Field(number)
		if f == nil {
			// The limit on fields is reached.
			if f = e.newField(m, number, path); f == nil {
				continue
			}
		}
		// The first occurrence in this message: record which fields preceded it.
		if f.now == 0 {
			lv.touched = append(lv.touched, f)
			f.Before.Union(&seen)
			if number < LowNumbers {
				seen.Add(number)
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
	// Some fields may have been dropped meanwhile because of the limit.
	for _, f := range lv.touched {
		f.Seen++
		f.Most = max(f.Most, f.now)
		f.now = 0
	}
	addEntries(m, lv)
}

// newField adds a field without statistics to m. path are the field numbers that lead to m. It returns nil if the
// limit on fields or on nesting does not allow it.
func (e *Evidence) newField(m *Message, number int32, path []int32) *Field {
	if len(path) >= MaxDepth {
		return nil
	}
	// Fields behind the cut were dropped before, so they must not return.
	if e.cut != nil {
		k := fieldKey{append(slices.Clone(path), number), e.scratch.root}
		if k.compare(*e.cut) > 0 {
			return nil
		}
	}
	f := e.scratch.recycler.newField()
	m.set(number, f)
	if e.count++; e.count > 2*e.mostFields() {
		e.trim()
		return m.Field(number)
	}
	return f
}
