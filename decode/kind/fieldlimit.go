package kind

import (
	"cmp"
	"slices"
)

// A key is a field's place: root, then field numbers from the root down.
// Keys are ordered by depth, then path, then root.
type key struct {
	path []int32
	root string
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(len(k.path), len(o.path)), slices.Compare(k.path, o.path), cmp.Compare(k.root, o.root))
}

// trim forgets the fields with the greatest keys, so that maxFields are left.
func (e *Evidence) trim() {
	var keys []key
	for root, m := range e.roots {
		collectKeys(m, root, nil, &keys)
	}
	if len(keys) <= maxFields {
		e.count = len(keys)
		return
	}
	slices.SortFunc(keys, key.compare)
	e.forget(keys[maxFields-1])
}

func collectKeys(m *Message, root string, path []int32, keys *[]key) {
	for _, n := range m.Numbers() {
		p := append(slices.Clone(path), n)
		*keys = append(*keys, key{p, root})
		for _, c := range m.Field(n).Children() {
			collectKeys(c, root, p, keys)
		}
	}
}

// forget drops every field whose key is after last, now and in the future.
func (e *Evidence) forget(last key) {
	if e.cut == nil || last.compare(*e.cut) < 0 {
		e.cut = &last
	}
	e.count = 0
	for root, m := range e.roots {
		e.forgetIn(m, root, nil)
	}
}

func (e *Evidence) forgetIn(m *Message, root string, path []int32) {
	for _, n := range m.Numbers() {
		p := append(slices.Clone(path), n)
		if (key{p, root}).compare(*e.cut) > 0 {
			if n < LowNumbers {
				m.low[n] = nil
			} else {
				delete(m.high, n)
			}
			continue
		}
		e.count++
		for _, c := range m.Field(n).Children() {
			e.forgetIn(c, root, p)
		}
	}
}
