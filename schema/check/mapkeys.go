package check

import (
	"bytes"
	"slices"

	"unwire/decode/wire"
)

// A mapKey is the key of one entry of a map field.
type mapKey struct {
	// field is the map field.
	field *fieldInfo
	// key is the protobuf encoding of the key.
	key []byte
}

// maxKeysCompared is the number of keys up to which comparing each pair is faster than building a set.
const maxKeysCompared = 12

// checkMapKeys records a contradiction if a key occurs twice in a map of the message at index at, because
// parsers would lose the first value.
func (k *Checker) checkMapKeys(t *wire.Tree, at int32, m *messageInfo) {
	list := k.mapKeys[:0]

	for c := t.Nodes[at].First; c != wire.None; c = t.Nodes[c].Next {
		n := &t.Nodes[c]
		if n.Type != wire.Len || n.Number > maxFieldNumber {
			continue
		}
		f := m.fields[int32(n.Number)]
		if f == nil || !f.isMap {
			continue
		}
		// A key that is absent has the default value, which is encoded as empty here.
		key := mapKey{field: f}
		for e := n.First; e != wire.None; e = t.Nodes[e].Next {
			if t.Nodes[e].Number == 1 {
				key.key = t.Payload(e)
			}
		}
		list = append(list, key)
	}

	// The buffer is kept for the next message.
	k.mapKeys = list[:0]
	if len(list) > maxKeysCompared {
		k.checkManyMapKeys(m, list)
		return
	}
	for i, b := range list {
		if slices.ContainsFunc(list[:i], func(a mapKey) bool { return a.field == b.field && bytes.Equal(a.key, b.key) }) {
			k.contradictTwice(m, b.field)
		}
	}
}

// checkManyMapKeys does the work of checkMapKeys with a set, which is faster for many keys.
func (k *Checker) checkManyMapKeys(m *messageInfo, list []mapKey) {
	sets := map[*fieldInfo]map[string]struct{}{}
	for _, key := range list {
		set := sets[key.field]
		if set == nil {
			set = map[string]struct{}{}
			sets[key.field] = set
		}
		if _, twice := set[string(key.key)]; twice {
			k.contradictTwice(m, key.field)
		}
		set[string(key.key)] = struct{}{}
	}
}

// contradictTwice records the contradiction that a key occurs twice in the map f.
func (k *Checker) contradictTwice(m *messageInfo, f *fieldInfo) {
	k.contradict(m, f, "a key occurs more than once in the map")
}
