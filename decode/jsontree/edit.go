package jsontree

import "slices"

// Replace returns the text with the value replaced by raw, which must be JSON. All other bytes are unchanged.
func (v Value) Replace(raw []byte) []byte {
	off, end := v.Span()
	return slices.Concat(v.text.data[:off], raw, v.text.data[end:])
}

// Insert returns the text with item inserted before the i-th item of the object or array, or at its end if there
// are fewer items. item is an element, or a member with its name and colon.
func (v Value) Insert(i int, item []byte) []byte {
	data := v.text.data
	off, _ := v.Span()
	items := v.items()
	switch {
	// An empty object or array needs no comma.
	case len(items) == 0:
		return slices.Concat(data[:off+1], item, data[off+1:])
	case i < len(items):
		at := items[i].name
		return slices.Concat(data[:at], item, []byte(","), data[at:])
	}
	at := items[len(items)-1].end
	return slices.Concat(data[:at], []byte(","), item, data[at:])
}

// Delete returns the text without the i-th item of the object or array. It also removes the comma between the
// item and its neighbour.
func (v Value) Delete(i int) []byte {
	items := v.items()
	// A member begins at its name.
	start, end := items[i].name, items[i].end
	switch {
	// The comma before the item disappears, or the one behind the first item.
	case i > 0:
		start = items[i-1].end
	case len(items) > 1:
		end = items[1].name
	}
	return slices.Concat(v.text.data[:start], v.text.data[end:])
}

// items returns the members or elements of the value.
func (v Value) items() []node {
	var out []node
	for item := range v.Items() {
		out = append(out, *item.node())
	}
	return out
}
