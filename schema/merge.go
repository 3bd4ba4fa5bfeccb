package schema

import (
	"maps"
	"slices"
)

// Merge adds what o has seen to e; o stays as it is. It commutes and
// associates: the evidence of the parts of a corpus, merged in any order, is
// that of the whole.
//
// Limits: as for Evidence; of more than 4,096 roots or methods the last by name are left out.
func (e *Evidence) Merge(o *Evidence) {
	for _, name := range slices.Sorted(maps.Keys(o.roots)) {
		m := e.roots[name]
		if m == nil {
			m = &message{}
			e.roots[name] = m
		}
		m.merge(o.roots[name])
	}
	for name, om := range o.methods {
		if m := e.methods[name]; m != nil {
			m.merge(om)
		} else {
			e.methods[name] = om.clone()
		}
	}
	keepFirst(e.roots)
	keepFirst(e.methods)
	if o.cut != nil {
		e.forget(*o.cut)
	}
	if e.cut != nil {
		e.forget(*e.cut)
	}
	e.trim()
}

func keepFirst[V any](m map[string]V) {
	if len(m) <= maxRoots {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m))[maxRoots:] {
		delete(m, name)
	}
}

func (m *message) merge(o *message) {
	m.samples += o.samples
	for _, n := range o.numbers() {
		f := m.get(n)
		if f == nil {
			f = &field{}
			m.set(n, f)
		}
		f.merge(o.get(n))
	}
}

func (f *field) merge(o *field) {
	f.mergeFlat(o)
	switch {
	case f.len != nil && f.len.NotMessage:
		f.child = nil
	case o.child != nil:
		if f.child == nil {
			f.child = &message{}
		}
		f.child.merge(o.child)
	}
	if o.group != nil {
		if f.group == nil {
			f.group = &message{}
		}
		f.group.merge(o.group)
	}
}

// mergeFlat merges all but the messages below the field.
func (f *field) mergeFlat(o *field) {
	f.seen += o.seen
	f.occurs += o.occurs
	f.most = max(f.most, o.most)
	f.groups += o.groups
	f.before.or(&o.before)
	if o.varint != nil {
		if f.varint == nil {
			f.varint = newVarintStats()
		}
		f.varint.merge(o.varint)
	}
	if o.fixed32 != nil {
		if f.fixed32 == nil {
			f.fixed32 = &fixedStats{}
		}
		f.fixed32.merge(o.fixed32)
	}
	if o.fixed64 != nil {
		if f.fixed64 == nil {
			f.fixed64 = &fixedStats{}
		}
		f.fixed64.merge(o.fixed64)
	}
	if o.len != nil {
		if f.len == nil {
			f.len = newLenStats()
		}
		f.len.merge(o.len)
	}
}
