package kind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"unwire/decode/kind/numberset"
	"unwire/decode/wire"
)

// Limits of the evidence. Real schemas are far smaller: the largest known message has 300 fields, and the
// deepest one 20 levels. Fields with the smallest (depth, path) are kept, so the result does not depend on the
// order of samples.
const (
	// maxFields is the maximum number of fields in total.
	maxFields = 50_000

	// MaxDepth is the maximum number of levels of nesting below the root message.
	MaxDepth = 48

	// maxRoots is the maximum number of root types, i.e. types of top-level messages.
	maxRoots = 4096
)

// Evidence has the statistics of every field of some root types (types of top-level messages), over all samples.
// Adding samples in any order, or merging the evidence of parts in any order, yields the same evidence.
//
// A length-delimited payload is recorded under every hypothesis that it does not refute by itself: text, bytes,
// packed numbers, and a message, whose fields are recorded in turn. JudgeField chooses among them.
//
// Limits: 50,000 fields (temporarily twice as many), 48 levels, 4,096 roots. Beyond that, the fields with the
// greatest depth and numbers are dropped, and Truncated reports it. Only then may the result depend on the
// order, because of fields that were kept for a while below a payload that a later sample proves not to be a
// message.
type Evidence struct {
	// roots maps the name of each root type to the statistics of its messages.
	roots map[string]*Message

	// count is the number of fields, without dropped subtrees.
	count int

	// cut is the last field, in the order of keys, that is kept; nil if no field was dropped.
	cut *fieldKey

	// maxFields is the maximum number of fields in total; 0 stands for the constant maxFields.
	maxFields int

	// scratch is memory that is reused for every message that is added.
	scratch scratch
}

// mostFields returns the maximum number of fields in total.
func (e *Evidence) mostFields() int { return cmp.Or(e.maxFields, maxFields) }

// NewEvidence returns an Evidence without messages.
func NewEvidence() *Evidence {
	return &Evidence{roots: map[string]*Message{}}
}

// Add adds one encoded message of the named root type.
//
// Errors: data is not a protobuf message. It is not added, and the error has the offset of the violation.
func (e *Evidence) Add(root string, data []byte) error {
	t := &e.scratch.tree
	t.Reset(data, wire.Options{MaxDepth: MaxDepth})
	return e.AddTree(root, t)
}

// AddTree adds one message, parsed as t, of the named root type.
//
// Errors: t is not a protobuf message; then the error has the offset of the violation. Too many root types.
func (e *Evidence) AddTree(root string, t *wire.Tree) error {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; !n.Sound() && (n.Type != wire.Len || !n.HasValidNumber()) {
			return fmt.Errorf("not a protobuf message of type %s: %w", root, t.Fault(n))
		}
	}

	// The message is sound. Its root type may be new.
	m := e.roots[root]
	if m == nil {
		if len(e.roots) >= maxRoots {
			return fmt.Errorf("the evidence has more than %d root types; %s is left out", maxRoots, root)
		}
		m = &Message{}
		e.roots[root] = m
	}
	e.scratch.root = root
	e.scratch.sample++
	e.scratch.samplingLevel = samplingLevel(t.Data)
	e.addMessage(m, t, 0, e.scratch.path[:0])
	if e.count > 2*e.mostFields() {
		e.trim()
	}
	return nil
}

// Truncated reports whether fields were dropped because of the limits.
func (e *Evidence) Truncated() bool { return e.cut != nil }

// Roots returns the names of the root types, sorted.
func (e *Evidence) Roots() []string {
	list := make([]string, 0, len(e.roots))
	for name := range e.roots {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Root returns the statistics of the named root type, or nil.
func (e *Evidence) Root(name string) *Message { return e.roots[name] }

// Fields returns the number of distinct fields in the evidence, including nested ones.
func (e *Evidence) Fields() int { return e.count }

// A Message holds the statistics of a message type: of all messages at one path of field numbers.
type Message struct {
	// Samples is the number of messages that were added.
	Samples int64

	// low has the statistics of the fields whose number is less than LowNumbers, by field number; nil for fields
	// that did not occur.
	low []*Field

	// high has the statistics of the other fields, by field number.
	high map[int32]*Field
}

// LowNumbers is the limit of low field numbers: fields below it are stored in a slice, others in a map. Only
// numbers below it are recorded in Field.Before.
const LowNumbers = numberset.Limit

// Field returns the statistics of a field, or nil.
func (m *Message) Field(number int32) *Field {
	if number < LowNumbers {
		if int(number) < len(m.low) {
			return m.low[number]
		}
		return nil
	}
	return m.high[number]
}

// set stores the statistics of the field with a number.
func (m *Message) set(number int32, f *Field) {
	if number >= LowNumbers {
		if m.high == nil {
			m.high = map[int32]*Field{}
		}
		m.high[number] = f
		return
	}
	if size := int(number) + 1; size > len(m.low) {
		m.low = slices.Grow(m.low, size-len(m.low))[:size]
	}
	m.low[number] = f
}

// Numbers returns the field numbers in ascending order.
func (m *Message) Numbers() []int32 {
	var list []int32
	for n := range m.fields {
		list = append(list, n)
	}
	return list
}

// hasOnly reports whether the message has exactly the fields with these numbers, which are in ascending order.
func (m *Message) hasOnly(numbers ...int32) bool {
	i := 0
	for n := range m.fields {
		if i == len(numbers) || n != numbers[i] {
			return false
		}
		i++
	}
	return i == len(numbers)
}

// fields calls yield with each field and its number, in ascending order of numbers.
func (m *Message) fields(yield func(int32, *Field) bool) {
	for n, f := range m.low {
		if f != nil && !yield(int32(n), f) {
			return
		}
	}
	if len(m.high) == 0 {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(m.high)) {
		if !yield(n, m.high[n]) {
			return
		}
	}
}

// Examples returns some short texts among the field's payloads, in an order that does not depend on that of
// samples. all reports whether there are no other payloads.
func (l *Payloads) Examples() (list []string, all bool) {
	for _, s := range l.Values.Texts {
		if s != "" {
			list = append(list, s)
		}
	}
	return list, l.Skipped == 0 && !l.Values.Full && len(list) == len(l.Values.Items)
}

// Redact replaces each example by the result of hide.
func (e *Evidence) Redact(hide func(string) string) {
	for _, m := range e.roots {
		m.redact(hide)
	}
}

// redact replaces the example texts of a message, and of all messages below it, by the result of hide.
func (m *Message) redact(hide func(string) string) {
	for _, n := range m.Numbers() {
		f := m.Field(n)
		if f.Len != nil {
			for i, s := range f.Len.Values.Texts {
				if s != "" {
					f.Len.Values.Texts[i] = hide(s)
				}
			}
		}
		for _, below := range f.Children() {
			below.redact(hide)
		}
	}
}
