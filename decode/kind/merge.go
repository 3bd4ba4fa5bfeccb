package kind

import (
	"maps"
	"slices"
)

// Merge adds the evidence of o to e. o is not changed. Merging is commutative and associative: the merged
// evidence of the parts of a corpus is that of the whole, in any order.
//
// Limits: those of Evidence. Of more than 4,096 roots, the last ones by name are dropped.
func (e *Evidence) Merge(o *Evidence) {
	for _, name := range slices.Sorted(maps.Keys(o.roots)) {
		m := e.roots[name]
		if m == nil {
			m = &Message{}
			e.roots[name] = m
		}
		m.merge(o.roots[name])
	}
	keepFirst(e.roots)
	if o.cut != nil {
		e.dropAfter(*o.cut)
	}
	if e.cut != nil {
		e.dropAfter(*e.cut)
	}
	e.trim()
}

// keepFirst removes all but the alphabetically first maxRoots names from m.
func keepFirst[V any](m map[string]V) {
	if len(m) <= maxRoots {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m))[maxRoots:] {
		delete(m, name)
	}
}

// merge adds the statistics of another message type to m.
func (m *Message) merge(o *Message) {
	m.Samples += o.Samples
	for _, n := range o.Numbers() {
		f := m.Field(n)
		if f == nil {
			f = &Field{}
			m.set(n, f)
		}
		f.merge(o.Field(n))
	}
}

// merge adds the statistics of another field, and of everything below it, to f.
func (f *Field) merge(o *Field) {
	f.MergeFlat(o)
	switch {
	case f.Len != nil && f.Len.NotMessage:
		f.Child = nil
	case o.Child != nil:
		if f.Child == nil {
			f.Child = &Message{}
		}
		f.Child.merge(o.Child)
	}
	if o.Group != nil {
		if f.Group == nil {
			f.Group = &Message{}
		}
		f.Group.merge(o.Group)
	}
}

// MergeFlat adds the statistics of another field without those of the messages below it.
func (f *Field) MergeFlat(o *Field) {
	f.Seen += o.Seen
	f.Occurs += o.Occurs
	f.Most = max(f.Most, o.Most)
	f.Groups += o.Groups
	f.Before.Union(&o.Before)

	// Statistics exist only for wire types that occurred.
	if o.Varint != nil {
		if f.Varint == nil {
			f.Varint = newVarints()
		}
		f.Varint.merge(o.Varint)
	}
	if o.Fixed32 != nil {
		if f.Fixed32 == nil {
			f.Fixed32 = &fixeds{}
		}
		f.Fixed32.merge(o.Fixed32)
	}
	if o.Fixed64 != nil {
		if f.Fixed64 == nil {
			f.Fixed64 = &fixeds{}
		}
		f.Fixed64.merge(o.Fixed64)
	}
	if o.Len != nil {
		if f.Len == nil {
			f.Len = newPayloads()
		}
		f.Len.merge(o.Len)
	}
}
