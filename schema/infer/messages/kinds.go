package messages

import (
	"fmt"

	"unwire/decode/wire"
)

// Limits of a discriminator: the field whose value selects the message type.
const (
	// maxKinds is the maximum number of distinct values of a discriminator.
	maxKinds = 48

	// maxKind is the maximum value of a discriminator.
	maxKind = 1 << 16

	// maxFields is the maximum number of fields of a message that are examined.
	maxFields = 1000
)

// kinds decides whether field 1 of protobuf messages is a discriminator: an enum whose value determines which
// other fields a message has. A message without the field has the value 0.
type kinds struct {
	// messages is the number of messages so far, and irregular the number of those whose field 1 cannot be a
	// discriminator.
	messages, irregular int64
	// byValue maps each value of field 1 to statistics of the other fields of these messages.
	byValue map[uint64]*fieldSets
	// many is set if field 1 has more than maxKinds values.
	many bool

	// decided is set if field 1 was found to be the discriminator.
	decided bool
}

// A fieldKey is a field number with the wire type of a value.
type fieldKey struct {
	// number is the field number.
	number uint64
	// wire is the wire type.
	wire wire.Type
}

// fieldSets counts the other fields in the messages that have one value of field 1.
type fieldSets struct {
	// messages is the number of messages with this value of field 1.
	messages int64
	// seen is the number of messages that contain each field.
	seen map[fieldKey]int64
}

// kindOf returns the value of field 1 of a message. ok is false if it cannot be a discriminator.
func kindOf(t *wire.Tree) (value uint64, ok bool) {
	found := false
	for c := range t.Children(0) {
		n := t.Node(c)
		if n.Number != 1 {
			continue
		}
		// A discriminator is a single number.
		if found || n.Type != wire.Varint {
			return 0, false
		}
		found, value = true, t.Uint(c)
	}
	return value, value <= maxKind
}

// observe adds the fields of a message to the statistics from which a discriminator is found.
func (k *kinds) observe(t *wire.Tree) {
	k.messages++
	value, ok := kindOf(t)
	if !ok {
		k.irregular++
		return
	}
	sets := k.byValue[value]
	if sets == nil {
		// Field 1 with many values is an identifier or a counter.
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

	// A repeated field counts once for each message.
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

// discriminates reports whether the other fields depend on field 1: there are two values such that all messages
// with the first have a field that no message with the second has.
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

// alwaysHasWhatLacks reports whether all messages of a have a field that no message of b has.
func (a *fieldSets) alwaysHasWhatLacks(b *fieldSets) bool {
	for key, n := range a.seen {
		if n == a.messages && b.seen[key] == 0 {
			return true
		}
	}
	return false
}

// rootOf returns the name of the message type to which a message belongs: name, with the value of the
// discriminator appended if there is one.
func (k *kinds) rootOf(name string, t *wire.Tree) string {
	if value, ok := kindOf(t); ok && k.decided {
		return fmt.Sprintf("%sKind%d", name, value)
	}
	return name
}
