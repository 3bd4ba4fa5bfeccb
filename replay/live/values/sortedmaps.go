package values

import (
	"bytes"
	"slices"

	"unwire/decode/wire"
)

// SortEntries returns a protobuf message in which the entries of maps with names as keys are sorted by
// key. Runtimes write the entries of a map in random order, so two messages with equal maps can only be
// compared by path after sorting. Maps with identifiers as keys stay as they are. changed is false if
// the order was right already.
//
// Shape: the result has the same length as the message, since only entries change places.
func SortEntries(t *wire.Tree) (data []byte, changed bool) {
	out := bytes.Clone(t.Data)
	changed = sortEntries(t, 0, out, 0)
	return out, changed
}

// sortEntries writes the fields of the message at node parent to out with maps sorted. The fields begin
// at offset at of the encoded data.
func sortEntries(t *wire.Tree, parent int32, out []byte, at int) (changed bool) {
	var fields []int32
	for c := range t.Children(parent) {
		fields = append(fields, c)
	}
	for number, entries := range namedEntries(t, fields) {
		sorted := slices.Clone(entries)
		slices.SortStableFunc(sorted, func(a, b int32) int { return bytes.Compare(entryKey(t, a), entryKey(t, b)) })
		if slices.Equal(sorted, entries) {
			continue
		}
		changed = true
		for i, next := 0, 0; i < len(fields); i++ {
			if t.Node(fields[i]).Number == number {
				fields[i] = sorted[next]
				next++
			}
		}
	}
	for _, c := range fields {
		n := t.Node(c)
		size := n.End - n.Off
		copy(out[at:at+size], t.Data[n.Off:n.End])
		if n.Type == wire.Len && t.IsMessage(c) && sortEntries(t, c, out, at+size-len(t.Payload(c))) {
			changed = true
		}
		at += size
	}
	return changed
}

// namedEntries returns the fields that are entries of a map with names as keys, by field number: at
// least two messages, each with a distinct text in field 1 and at most one field 2.
func namedEntries(t *wire.Tree, fields []int32) map[uint64][]int32 {
	maps, no := map[uint64][]int32{}, map[uint64]bool{}
	for _, c := range fields {
		n := t.Node(c)
		key := entryKey(t, c)
		if key == nil || isKey(string(key)) || slices.ContainsFunc(maps[n.Number], func(o int32) bool { return bytes.Equal(entryKey(t, o), key) }) {
			no[n.Number] = true
			continue
		}
		if len(maps[n.Number]) >= maxNamed {
			no[n.Number] = true
			continue
		}
		maps[n.Number] = append(maps[n.Number], c)
	}
	for number := range no {
		delete(maps, number)
	}
	return maps
}

// maxNamed is the largest number of entries of a map that is sorted. The keys of larger maps are
// probably generated.
const maxNamed = 256

// entryKey returns the key of a field that may be an entry of a map; nil if it cannot be one.
func entryKey(t *wire.Tree, field int32) (key []byte) {
	if t.Node(field).Type != wire.Len || !t.IsMessage(field) {
		return nil
	}
	values := 0
	for c := range t.Children(field) {
		switch n := t.Node(c); {
		case n.Number == 1 && key == nil && n.Type == wire.Len && IsPrintable(t.Payload(c)) && len(t.Payload(c)) > 0:
			key = t.Payload(c)
		case n.Number == 2 && values == 0:
			values++
		default:
			return nil
		}
	}
	return key
}
