package kind

import (
	"cmp"
	"slices"
)

// A key identifies a field by root type and field numbers. Keys are ordered by depth, then path, then root.
type key struct {
	path []int32
	root string
}

// compare compares two map keys for sorting.
func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(len(k.path), len(o.path)), slices.Compare(k.path, o.path), cmp.Compare(k.root, o.root))
}

// trim drops the fields with the greatest keys, so that at most maxFields remain.
func (e *Evidence) trim() {
	var keys []key
	for root, m := range e.roots {
		collectKeys(m, root, nil, &keys)
	}
	if len(keys) <= maxFields {
		e.count = len(keys)
		return
	}

	// Deep fields with high numbers are dropped first.
	slices.SortFunc(keys, key.compare)
	e.forget(keys[maxFields-1])
}

// collectKeys appends the keys of all fields below m.
func collectKeys(m *Message, root string, path []int32, keys *[]key) {
	for _, n := range m.Numbers() {
		p := append(slices.Clone(path), n)
		*keys = append(*keys, key{p, root})
		for _, c := range m.Field(n).Children() {
			collectKeys(c, root, p, keys)
		}
	}
}

// forget drops every field whose key is greater than last, now and in the future.
func (e *Evidence) forget(last key) {
	if e.cut == nil || last.compare(*e.cut) < 0 {
		e.cut = &last
	}
	e.count = 0
	for root, m := range e.roots {
		e.forgetIn(m, root, nil)
	}
}

// forgetIn drops the fields below m when a limit is reached, and counts the other ones.
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
