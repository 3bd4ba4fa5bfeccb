// Package mapkey handles the keys of possible map entries: messages that consist of field 1, the key, and field 2, the
// value. A key stays encoded: it is what follows the tag of field 1.
//
//	key, ok := mapkey.Parse(entry)
//	isNew := set.Add(key)
//
// Package kind uses the keys as evidence for or against maps: a duplicate key refutes a map, and their order shows how
// the sender stores it.
package mapkey

import (
	"bytes"
	"cmp"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// Parse returns the encoded key of a map entry. ok is false unless p consists of field 1 and field 2.
func Parse(p []byte) (key []byte, ok bool) {
	number, typ, n := protowire.ConsumeTag(p)
	if n < 0 || number != 1 {
		return nil, false
	}
	size := protowire.ConsumeFieldValue(number, typ, p[n:])
	if size < 0 {
		return nil, false
	}
	key, p = p[n:n+size], p[n+size:]
	number, typ, n = protowire.ConsumeTag(p)
	if n < 0 || number != 2 {
		return nil, false
	}
	return key, protowire.ConsumeFieldValue(number, typ, p[n:]) == len(p)-n
}

// Compare returns -1, 0 or +1 by the order in which an encoder with sorted maps writes the encoded keys a and
// b. The length at the beginning of text keys does not count.
func Compare(a, b []byte) int {
	x, n := protowire.ConsumeBytes(a)
	y, m := protowire.ConsumeBytes(b)
	if n == len(a) && m == len(b) {
		return bytes.Compare(x, y)
	}
	v, n := protowire.ConsumeVarint(a)
	w, m := protowire.ConsumeVarint(b)
	if n == len(a) && m == len(b) {
		return cmp.Compare(v, w)
	}
	return bytes.Compare(a, b)
}

// A Set is the set of the keys of one message's map entries: a list and, above a certain size, a hash table of
// indexes into it. The zero value is empty.
type Set struct {
	// list has the encoded keys in the order in which they were added.
	list [][]byte

	// slots is an open-addressing hash table of indexes in list plus one, with 0 for free slots. At most half of it
	// is used.
	slots []int32

	// seed is the random seed of the table's hash function, so that hostile keys cannot cause collisions.
	seed maphash.Seed
}

// fewKeys is the number of keys up to which a linear search is used.
const fewKeys = 8

// maxKeptSlots is the maximum size of a hash table that is reused for the next message.
const maxKeptSlots = 4096

// Reset removes all keys.
func (s *Set) Reset() {
	clear(s.list)
	s.list = s.list[:0]
	if len(s.slots) > maxKeptSlots {
		// Clearing a large table would cost its whole size for every message.
		s.slots = nil
	}
	s.slots = s.slots[:0]
}

// Add adds an encoded key, and reports whether it was new.
func (s *Set) Add(key []byte) bool {
	if len(s.list) < fewKeys {
		for _, k := range s.list {
			if bytes.Equal(k, key) {
				return false
			}
		}
		s.list = append(s.list, key)
		return true
	}
	if 2*len(s.list) >= len(s.slots) {
		s.grow()
	}
	at := s.slotOf(key)
	if s.slots[at] != 0 {
		return false
	}
	s.list = append(s.list, key)
	s.slots[at] = int32(len(s.list))
	return true
}

// grow rebuilds the table with space for twice as many keys.
func (s *Set) grow() {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	size := 64
	for size < 4*len(s.list) {
		size *= 2
	}
	if size > cap(s.slots) {
		s.slots = make([]int32, size)
	} else {
		s.slots = s.slots[:size]
		clear(s.slots)
	}
	for i, k := range s.list {
		s.slots[s.slotOf(k)] = int32(i + 1)
	}
}

// slotOf returns the index in slots of a key, or of the free slot where it can be inserted.
func (s *Set) slotOf(key []byte) int {
	at := int(maphash.Bytes(s.seed, key)) & (len(s.slots) - 1)
	for s.slots[at] != 0 && !bytes.Equal(s.list[s.slots[at]-1], key) {
		at = (at + 1) & (len(s.slots) - 1)
	}
	return at
}
