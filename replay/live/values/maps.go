package values

import (
	"slices"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// Maps whose keys are identifiers have different keys in each run, in a meaningless order. Their
// entries are numbered in the order of their values.

// isMap reports whether a JSON object is a map with identifiers as keys. JSON itself does not
// distinguish field names from keys.
func isMap(v jsontree.Value) bool {
	if v.Kind() != jsontree.Object {
		return false
	}
	for item := range v.Items() {
		if isKey(item.Name()) {
			return true
		}
	}
	return false
}

// isKey reports whether the name of a JSON member is a map key: an identifier, a number, or a word with
// a number.
func isKey(name string) bool {
	if ClassOf(name) != "" || IsDigits(name) {
		return true
	}
	word, number, ok := cutLast(name, "-_:./#")
	return ok && IsDigits(number) && isWord(word)
}

// cutLast splits a text at the last occurrence of one of the characters in at; ok is false if there is
// none.
func cutLast(s, at string) (before, after string, ok bool) {
	i := strings.LastIndexAny(s, at)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// isWord reports whether a text consists only of letters.
func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
}

// sortedEntries returns the members of a JSON map, sorted by their values with identifiers left out:
// keys that are generated have another order in each run.
func sortedEntries(v jsontree.Value) []jsontree.Value {
	entries := slices.Collect(v.Items())
	if len(entries) == 1 {
		return entries
	}
	by := make(map[int]string, len(entries))
	for _, e := range entries {
		off, _ := e.Span()
		by[off] = Classes(compact(e.Raw())) + " " + string(ClassOf(e.Name()))
	}
	slices.SortStableFunc(entries, func(a, b jsontree.Value) int {
		x, _ := a.Span()
		y, _ := b.Span()
		return strings.Compare(by[x], by[y])
	})
	return entries
}

// An entry is an entry of a protobuf map, with its sort key.
type entry struct {
	// node is the node of the entry in the parsed message.
	node int32

	// by is the sort key: the entry's value without identifiers.
	by string
}

// entryOrder returns the sorted entries of those maps in the message at node parent that have
// identifiers as keys, by field number. Field numbers of other fields have no entries.
func entryOrder(t *wire.Tree, parent int32) map[uint64][]entry {
	maps := map[uint64][]entry{}
	for c := range t.Children(parent) {
		n := t.Node(c)
		if n.Type != wire.Len {
			continue
		}
		list, seen := maps[n.Number]
		if seen && list == nil {
			// another field of that number is not an entry
			continue
		}
		by, ok := entryValue(t, c)
		if !ok {
			maps[n.Number] = nil
			continue
		}
		maps[n.Number] = append(list, entry{c, by})
	}
	for _, list := range maps {
		slices.SortStableFunc(list, func(a, b entry) int { return strings.Compare(a.by, b.by) })
	}
	return maps
}

// entryValue returns the sort key of a map entry: its value without identifiers. ok is false if the
// field is not an entry of a map with identifiers as keys.
func entryValue(t *wire.Tree, field int32) (by string, ok bool) {
	if !t.IsMessage(field) {
		return "", false
	}
	class := ""
	for c := range t.Children(field) {
		n := t.Node(c)
		switch {
		case n.Number == 1 && class == "" && n.Type == wire.Len:
			key := t.Payload(c)
			if class = string(ClassOf(string(key))); class == "" && isKey(string(key)) {
				class = "key"
			}
		case n.Number == 1 && class == "" && isNumber(n.Type):
			class = "number"
		case n.Number == 2 && by == "" && class != "":
			by = n.Type.String() + Classes(t.Payload(c))
		default:
			return "", false
		}
		if class == "" {
			return "", false
		}
	}
	return by + " " + class, class != ""
}
