package kind

import (
	"encoding/binary"
	"slices"
)

// sketchSize is how many distinct values a sketch knows exactly.
const sketchSize = 24

// A sketch is a bounded summary of the distinct values of a field: the values with the
// smallest hashes, and how often each was seen. Whatever the order of input, the same
// values are kept, and each kept value's count is that of all of it that was entered.
type sketch struct {
	Items []item `json:"items,omitempty"` // by hash
	Full  bool   `json:"full,omitempty"`  // there were more distinct values

	// Of the first Items, where they are payloads.
	Texts texts `json:"texts,omitempty"`

	recent [8]uint8 // which of Items a value was, by its last bits
}

type item struct {
	Hash uint64 `json:"h"`

	// A number itself, or the length of a payload.
	Value uint64 `json:"v,omitempty"`

	Count int64 `json:"n"`
}

// addValue counts one value.
func (s *sketch) addValue(v uint64) {
	// No two numbers have one hash.
	if i := int(s.recent[v%8]); i < len(s.Items) && s.Items[i].Value == v {
		s.Items[i].Count++
		return
	}
	if i, _ := s.insert(item{mix(v), v, 1}); i < sketchSize {
		s.recent[v%8] = uint8(i)
	}
}

func (s *sketch) addBytes(p []byte, weight int64) {
	if i, fresh := s.insert(item{hashBytes(p), uint64(len(p)), weight}); fresh && i < maxTexts {
		s.Texts.insert(i, exampleText(p))
	}
}

// insert returns the item's place among Items, sketchSize if it has none, and
// whether it is new there.
func (s *sketch) insert(it item) (place int, fresh bool) {
	if len(s.Items) == sketchSize && it.Hash > s.Items[sketchSize-1].Hash {
		s.Full = true
		return sketchSize, false
	}
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

// mix is the finaliser of splitmix64: a bijection, so distinct numbers never collide.
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// hashBytes hashes a payload's first 128 bytes, its last 8 and its length. It
// must be the same in every process, for evidence is merged across them.
func hashBytes(p []byte) uint64 {
	h := uint64(len(p))*0x9e3779b97f4a7c15 + 1
	tail := p[max(0, len(p)-8):]
	for p = p[:min(len(p), 128)]; len(p) >= 8; p = p[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(p))
	}
	return mix(mix(h^word(p)) ^ word(tail))
}

// word is up to eight bytes as a number, the first the least.
func word(p []byte) (v uint64) {
	if len(p) >= 8 {
		return binary.LittleEndian.Uint64(p)
	}
	for i := len(p) - 1; i >= 0; i-- {
		v = v<<8 | uint64(p[i])
	}
	return v
}
