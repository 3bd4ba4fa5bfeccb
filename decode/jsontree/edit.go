package jsontree

import "slices"

// Replace returns the text with raw, which is JSON, in place of the value. All
// other bytes stay as they are.
func (v Value) Replace(raw []byte) []byte {
	off, end := v.Span()
	return slices.Concat(v.text.data[:off], raw, v.text.data[end:])
}

// Insert returns the text with a new item before the i-th of the object or array,
// or behind its last. Item is an element, or a member with its name and colon.
func (v Value) Insert(i int, item []byte) []byte {
	data := v.text.data
	off, _ := v.Span()
	items := v.items()
	switch {
	case len(items) == 0:
		return slices.Concat(data[:off+1], item, data[off+1:])
	case i < len(items):
		at := items[i].name
		return slices.Concat(data[:at], item, []byte(","), data[at:])
	}
	at := items[len(items)-1].end
	return slices.Concat(data[:at], []byte(","), item, data[at:])
}

// Delete returns the text without the i-th item of the object or array, and
// without the comma that separates it from its neighbour.
func (v Value) Delete(i int) []byte {
	items := v.items()
	start, end := items[i].name, items[i].end
	switch {
	case i > 0:
		start = items[i-1].end
	case len(items) > 1:
		end = items[1].name
	}
	return slices.Concat(v.text.data[:start], v.text.data[end:])
}

func (v Value) items() []node {
	var out []node
	for item := range v.Items() {
		out = append(out, *item.node())
	}
	return out
}
