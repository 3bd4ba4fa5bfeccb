package check

import (
	"bytes"
	"slices"

	"unwire/decode/wire"
)

// A mapKey is a key, encoded, of one of a message's maps.
type mapKey struct {
	field *fieldInfo
	key   []byte
}

// fewKeys are compared with each other; of more, a set is made.
const fewKeys = 12

// keys checks that no map of a message has a key twice.
func (k *Checker) keys(t *wire.Tree, at int32, m *messageInfo) {
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
		key := mapKey{field: f}
		for e := n.First; e != wire.None; e = t.Nodes[e].Next {
			if t.Nodes[e].Number == 1 {
				key.key = t.Payload(e)
			}
		}
		list = append(list, key)
	}
	k.mapKeys = list[:0]
	if len(list) > fewKeys {
		k.manyKeys(m, list)
		return
	}
	for i, b := range list {
		if slices.ContainsFunc(list[:i], func(a mapKey) bool { return a.field == b.field && bytes.Equal(a.key, b.key) }) {
			k.contradictTwice(m, b.field)
		}
	}
}

func (k *Checker) manyKeys(m *messageInfo, list []mapKey) {
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

func (k *Checker) contradictTwice(m *messageInfo, f *fieldInfo) {
	k.contradict(m, f, "a key more than once in a map")
}
