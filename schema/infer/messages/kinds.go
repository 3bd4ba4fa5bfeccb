package messages

import (
	"fmt"

	"unwire/decode/wire"
)

const (
	// maxKinds is how many values a discriminator has at most.
	maxKinds = 48

	// maxKind is the greatest value of an enum of kinds.
	maxKind = 1 << 16

	// maxFields is how many fields of a message are looked at.
	maxFields = 1000
)

// kinds find out whether field 1 of protobuf messages says which kind each is. A message
// without it has the value 0.
type kinds struct {
	messages, irregular int64
	byValue             map[uint64]*fieldSets
	many                bool

	// decided says that field 1 is the discriminator, as far as is known.
	decided bool
}

// A fieldKey is a field as it is on the wire.
type fieldKey struct {
	number uint64
	wire   wire.Type
}

// fieldSets are the other fields of messages with one value.
type fieldSets struct {
	messages int64
	seen     map[fieldKey]int64
}

// kindOf is the value of field 1; false if there is none that could be a kind.
func kindOf(t *wire.Tree) (value uint64, ok bool) {
	found := false
	for c := range t.Children(0) {
		n := t.Node(c)
		if n.Number != 1 {
			continue
		}
		if found || n.Type != wire.Varint {
			return 0, false
		}
		found, value = true, t.Uint(c)
	}
	return value, value <= maxKind
}

// observe looks at a message.
func (k *kinds) observe(t *wire.Tree) {
	k.messages++
	value, ok := kindOf(t)
	if !ok {
		k.irregular++
		return
	}
	sets := k.byValue[value]
	if sets == nil {
		if k.many = k.many || len(k.byValue) == maxKinds; k.many {
			return
		}
		if k.byValue == nil {
			k.byValue = map[uint64]*fieldSets{}
		}
		sets = &fieldSets{seen: map[fieldKey]int64{}}
		k.byValue[value] = sets
	}
	sets.messages++
	own := map[fieldKey]bool{}
	for c := range t.Children(0) {
		n := t.Node(c)
		key := fieldKey{n.Number, n.Type}
		if n.Number == 1 || own[key] || len(own) == maxFields {
			continue
		}
		own[key] = true
		if _, known := sets.seen[key]; known || len(sets.seen) < maxFields {
			sets.seen[key]++
		}
	}
}

// discriminates reports whether the fields of a message depend on field 1: two of its
// values have each messages with a field that those of the other never have, or one has a
// field always that the other never has.
func (k *kinds) discriminates() bool {
	if k.many || k.irregular > 0 || len(k.byValue) < 2 || int64(len(k.byValue)) > max(2, k.messages/2) {
		return false
	}
	for a, setsA := range k.byValue {
		for b, setsB := range k.byValue {
			if a != b && setsA.alwaysHasWhatLacks(setsB) {
				return true
			}
		}
	}
	return false
}

// alwaysHasWhatLacks reports a field that all messages of a have, and none of b.
func (a *fieldSets) alwaysHasWhatLacks(b *fieldSets) bool {
	for key, n := range a.seen {
		if n == a.messages && b.seen[key] == 0 {
			return true
		}
	}
	return false
}

// rootOf names the type of a message.
func (k *kinds) rootOf(name string, t *wire.Tree) string {
	if value, ok := kindOf(t); ok && k.decided {
		return fmt.Sprintf("%sKind%d", name, value)
	}
	return name
}
