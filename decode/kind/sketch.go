package kind

import (
	"encoding/binary"
	"slices"
)

// sketchSize is the maximum number of distinct values in a sketch.
const sketchSize = 24

// A sketch is a bottom-k sketch of a field's distinct values: the values with the smallest hashes, with exact
// counts. It does not depend on the order of values. Source: Cohen and Kaplan, "Summarizing data using bottom-k
// sketches", PODC 2007.
type sketch struct {
	// Items are sorted by hash.
	Items []sketchItem `json:"items,omitempty" pb:"1"`

	// Full means that there were more distinct values than the sketch can store.
	Full bool `json:"full,omitempty" pb:"2"`

	// Texts has the texts of the first elements of Items as examples, if the values are payloads.
	Texts exampleTexts `json:"texts,omitempty" pb:"3"`

	// recent caches, by the last three bits of a number, the index in Items at which such a number was found last.
	recent [8]uint8
}

// A sketchItem is one distinct value in a sketch.
type sketchItem struct {
	// Hash is the hash of the value.
	Hash uint64 `json:"h" pb:"1,fixed"`

	// Value is the number itself, or the length of a payload.
	Value uint64 `json:"v,omitempty" pb:"2"`

	// Count is the number of occurrences of the value.
	Count int64 `json:"n" pb:"3"`
}

// addValue counts one occurrence of a number.
func (s *sketch) addValue(v uint64) {
	// mix is a bijection, so different numbers have different hashes.
	if i := int(s.recent[v%8]); i < len(s.Items) && s.Items[i].Value == v {
		s.Items[i].Count++
		return
	}
	if i, _ := s.insert(sketchItem{mix(v), v, 1}); i < sketchSize {
		s.recent[v%8] = uint8(i)
	}
}

// addBytes counts a payload that represents weight payloads. example means that it may become an example.
func (s *sketch) addBytes(p []byte, weight int64, example bool) {
	if i, fresh := s.insert(sketchItem{hashBytes(p), uint64(len(p)), weight}); fresh && i < maxTexts && example {
		s.Texts.insert(i, exampleText(p))
	}
}

// insert adds an item, or its count if the value is known. It returns the item's index in Items, or sketchSize if
// the item is not kept, and whether it is new.
func (s *sketch) insert(it sketchItem) (place int, fresh bool) {
	if len(s.Items) == sketchSize && it.Hash > s.Items[sketchSize-1].Hash {
		s.Full = true
		return sketchSize, false
	}

	// Binary search by hash.
	lo, hi := 0, len(s.Items)
	for lo < hi {
		if mid := (lo + hi) / 2; s.Items[mid].Hash < it.Hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(s.Items) && s.Items[lo].Hash == it.Hash {
		s.Items[lo].Count += it.Count
		return lo, false
	}

	// Grow once to the full size: many fields have few distinct values, the others exceed it.
	if n := len(s.Items); n == cap(s.Items) {
		size := sketchSize + 1
		if n < 4 {
			size = 4
		}
		s.Items = slices.Grow(s.Items, size-n)
	}
	s.Items = slices.Insert(s.Items, lo, it)
	if len(s.Items) > sketchSize {
		s.Items = s.Items[:sketchSize]
		s.Full = true
	}
	return lo, true
}

// merge adds the values of another sketch.
func (s *sketch) merge(o *sketch) {
	if o == nil {
		return
	}
	for k, it := range o.Items {
		i, fresh := s.insert(it)
		if i >= maxTexts || len(o.Texts)+len(s.Texts) == 0 {
			continue
		}
		text := ""
		if k < len(o.Texts) {
			text = o.Texts[k]
		}
		if fresh {
			s.Texts.insert(i, text)
		} else {
			s.Texts.merge(i, text)
		}
	}
	s.Full = s.Full || o.Full
}

// mix returns a hash of v by the finalizer of SplitMix64: a bijection, so different numbers never collide. Source:
// https://prng.di.unimi.it/splitmix64.c
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// hashBytes hashes the first 128 bytes, the last 8 bytes and the length of a payload. It must be the same in
// every process, because evidence is merged across processes.
func hashBytes(p []byte) uint64 {
	h := uint64(len(p))*0x9e3779b97f4a7c15 + 1
	tail := p[max(0, len(p)-8):]
	for p = p[:min(len(p), 128)]; len(p) >= 8; p = p[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(p))
	}
	return mix(mix(h^word(p)) ^ word(tail))
}

// word returns the first bytes of p, up to eight, as a little-endian number.
func word(p []byte) (v uint64) {
	if len(p) >= 8 {
		return binary.LittleEndian.Uint64(p)
	}
	for i := len(p) - 1; i >= 0; i-- {
		v = v<<8 | uint64(p[i])
	}
	return v
}

// LongHashes returns the hashes of those distinct payloads in the sample that have at least least bytes, in
// ascending order.
func (l *Payloads) LongHashes(least uint64) []uint64 { return l.Values.hashesFrom(least) }

// LargeHashes returns the hashes of those distinct values in the sample that are at least least, in ascending
// order.
func (s *Varints) LargeHashes(least uint64) []uint64 { return s.Values.hashesFrom(least) }

// hashesFrom returns the hashes of the items whose Value is at least least.
func (s *sketch) hashesFrom(least uint64) (list []uint64) {
	if s == nil {
		return nil
	}
	for _, it := range s.Items {
		if it.Value >= least {
			list = append(list, it.Hash)
		}
	}
	return list
}

// keyOrders records in which orders pairs of neighbouring map keys occurred: a bottom-k sketch by the hash of both
// keys, so that it does not depend on the order of messages. A pair in both orders shows that the sender iterates
// over a hash table; a list of named things keeps its order.
type keyOrders []keyOrder

// A keyOrder records in which orders a pair of map keys was seen.
type keyOrder struct {
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

// addPair records the order of two neighbouring map keys.
func (s *keyOrders) addPair(a, b []byte) {
	x, y, order := hashBytes(a), hashBytes(b), orderForth
	if x > y {
		x, y, order = y, x, orderBack
	}
	s.insert(keyOrder{mix(x ^ mix(y)), order})
}

// insert adds a pair of keys. The sketch keeps only the pairs with the smallest hashes.
func (s *keyOrders) insert(k keyOrder) {
	list := *s
	i, found := slices.BinarySearchFunc(list, k, func(a, b keyOrder) int {
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

// merge adds the pairs of another sketch.
func (s *keyOrders) merge(o keyOrders) {
	for _, k := range o {
		s.insert(k)
	}
}

// valid reports whether a sketch from a file is possible.
func (s keyOrders) valid() bool {
	for i, k := range s {
		if k.Orders <= 0 || k.Orders > orderBoth || i > 0 && s[i-1].Hash >= k.Hash {
			return false
		}
	}
	return len(s) <= maxKeyOrders
}

// Reordered reports whether some pair of map keys was seen in both orders, as happens if the sender
// stores maps in hash tables.
func (l *Payloads) Reordered() bool {
	return slices.ContainsFunc(l.KeyOrders, func(k keyOrder) bool { return k.Orders == orderBoth })
}
