package names

import (
	"bytes"
	"maps"
	"slices"

	"unwire/decode/jsontree"
)

// maxKeys limits the number of names in a Keys.
const maxKeys = 100_000

// A Keys collects the names of members in JSON texts. The zero value is empty.
type Keys struct {
	// seen has the names collected so far.
	seen map[string]bool
}

// AddJSON adds the names in a JSON object or array. Other data is ignored.
//
// Limits: 100,000 names.
func (k *Keys) AddJSON(data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return
	}
	root, err := jsontree.Parse(data)
	if err != nil {
		return
	}
	if k.seen == nil {
		k.seen = map[string]bool{}
	}
	for v := range root.All() {
		if off, end := v.NameSpan(); off < end && len(k.seen) < maxKeys {
			k.seen[v.Name()] = true
		}
	}
}

// Sorted returns the names in alphabetical order.
func (k *Keys) Sorted() []string {
	names := slices.AppendSeq([]string{}, maps.Keys(k.seen))
	slices.Sort(names)
	return names
}
