package kind

import (
	"cmp"
	"slices"
)

// A fieldKey identifies a field by root type and field numbers. Keys are ordered by depth, then path, then root.
type fieldKey struct {
	// path are the field numbers from the root message to the field.
	path []int32

	// root is the name of the type of the root (top-level) message.
	root string
}

// compare returns -1, 0 or +1 as k sorts before, with or after o.
func (k fieldKey) compare(o fieldKey) int {
	return cmp.Or(cmp.Compare(len(k.path), len(o.path)), slices.Compare(k.path, o.path), cmp.Compare(k.root, o.root))
}

// trim drops the fields with the greatest keys (the deepest ones first), so that at most mostFields remain.
func (e *Evidence) trim() {
	var keys []fieldKey
	for root, m := range e.roots {
		collectKeys(m, root, nil, &keys)
	}
	most := e.mostFields()
	if len(keys) <= most {
		e.count = len(keys)
		return
	}

	// Deep fields with high numbers are dropped first.
	slices.SortFunc(keys, fieldKey.compare)
	e.dropAfter(keys[most-1])
}

// collectKeys appends the keys of all fields below m to keys. path are the field numbers that lead from the root to
// m.
func collectKeys(m *Message, root string, path []int32, keys *[]fieldKey) {
	for _, n := range m.Numbers() {
		p := append(slices.Clone(path), n)
		*keys = append(*keys, fieldKey{p, root})
		for _, c := range m.Field(n).Children() {
			collectKeys(c, root, p, keys)
		}
	}
}

// dropAfter drops every field whose key is greater than last, now and whenever it occurs again.
func (e *Evidence) dropAfter(last fieldKey) {
	if e.cut == nil || last.compare(*e.cut) < 0 {
		e.cut = &last
	}
	e.count = 0
	for root, m := range e.roots {
		e.dropIn(m, root, nil)
	}
}

// dropIn drops the fields below m whose keys are greater than e.cut, and counts the others in e.count.
func (e *Evidence) dropIn(m *Message, root string, path []int32) {
	for _, n := range m.Numbers() {
		p := append(slices.Clone(path), n)
		if (fieldKey{p, root}).compare(*e.cut) > 0 {
			if n < LowNumbers {
				m.low[n] = nil
			} else {
				delete(m.high, n)
			}
			continue
		}
		e.count++
		for _, c := range m.Field(n).Children() {
			e.dropIn(c, root, p)
		}
	}
}
