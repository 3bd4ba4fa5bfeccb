package kind

import (
	"slices"

	"unwire/decode/kind/exampletext"
	"unwire/decode/kind/stablehash"
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
	Texts exampletext.Texts `json:"texts,omitempty" pb:"3"`

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
	// Mix is a bijection, so different numbers have different hashes.
	if i := int(s.recent[v%8]); i < len(s.Items) && s.Items[i].Value == v {
		s.Items[i].Count++
		return
	}
	if i, _ := s.insert(sketchItem{stablehash.Mix(v), v, 1}); i < sketchSize {
		s.recent[v%8] = uint8(i)
	}
}

// addBytes counts a payload that represents weight payloads. example means that it may become an example.
func (s *sketch) addBytes(p []byte, weight int64, example bool) {
	if i, fresh := s.insert(sketchItem{stablehash.Bytes(p), uint64(len(p)), weight}); fresh && i < exampletext.Most && example {
		s.Texts.Insert(i, exampletext.Of(p))
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
		if i >= exampletext.Most || len(o.Texts)+len(s.Texts) == 0 {
			continue
		}
		text := ""
		if k < len(o.Texts) {
			text = o.Texts[k]
		}
		if fresh {
			s.Texts.Insert(i, text)
		} else {
			s.Texts.Merge(i, text)
		}
	}
	s.Full = s.Full || o.Full
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

// Reordered reports whether some pair of map keys was seen in both orders, as happens if the sender
// stores maps in hash tables.
func (l *Payloads) Reordered() bool { return l.KeyOrders.Reordered() }
