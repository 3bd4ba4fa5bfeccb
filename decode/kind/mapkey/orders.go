package mapkey

import (
	"slices"

	"unwire/decode/kind/stablehash"
)

// Orders records in which orders pairs of neighbouring map keys occurred: a bottom-k sketch by the hash of both
// keys, so that it does not depend on the order of messages. A pair in both orders shows that the sender iterates
// over a hash table; a list of named things keeps its order.
type Orders []order

// An order records in which orders a pair of map keys was seen.
type order struct {
	// Hash is the hash of the two keys, independent of their order.
	Hash uint64 `json:"h" pb:"1,fixed"`

	// Orders is a bit set of the orders in which the pair occurred: orderForth, orderBack or both.
	Orders int32 `json:"o" pb:"2"`
}

// The orders of a pair of map keys: orderForth if the key with the smaller hash comes first, otherwise orderBack.
const (
	orderForth int32 = 1
	orderBack  int32 = 2
	orderBoth        = orderForth | orderBack
)

// maxKeyOrders is the maximum number of pairs of keys that a sketch keeps.
const maxKeyOrders = 16

// AddPair records the order of two neighbouring map keys.
func (s *Orders) AddPair(a, b []byte) {
	x, y, direction := stablehash.Bytes(a), stablehash.Bytes(b), orderForth
	if x > y {
		x, y, direction = y, x, orderBack
	}
	s.insert(order{stablehash.Mix(x ^ stablehash.Mix(y)), direction})
}

// insert adds a pair of keys. The sketch keeps only the pairs with the smallest hashes.
func (s *Orders) insert(k order) {
	list := *s
	i, found := slices.BinarySearchFunc(list, k, func(a, b order) int {
		switch {
		case a.Hash < b.Hash:
			return -1
		case a.Hash > b.Hash:
			return 1
		}
		return 0
	})
	if found {
		list[i].Orders |= k.Orders
		return
	}
	if i == maxKeyOrders {
		return
	}
	list = slices.Insert(list, i, k)
	*s = list[:min(len(list), maxKeyOrders)]
}

// Merge adds the pairs of another sketch.
func (s *Orders) Merge(o Orders) {
	for _, k := range o {
		s.insert(k)
	}
}

// Valid reports whether a sketch from a file is possible.
func (s Orders) Valid() bool {
	for i, k := range s {
		if k.Orders <= 0 || k.Orders > orderBoth || i > 0 && s[i-1].Hash >= k.Hash {
			return false
		}
	}
	return len(s) <= maxKeyOrders
}

// Reordered reports whether some pair of keys was seen in both orders.
func (s Orders) Reordered() bool {
	return slices.ContainsFunc(s, func(k order) bool { return k.Orders == orderBoth })
}
