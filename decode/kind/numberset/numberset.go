// Package numberset has sets of low field numbers.
//
//	var s numberset.Set
//	s.Add(3)
//	s.Has(3) // true
package numberset

import "math/bits"

// Limit is the limit of the numbers in a Set: they are below it.
const Limit = 256

// A Set is a set of field numbers below Limit. Higher numbers are not represented.
type Set [Limit / 64]uint64

// Add adds the number n, which must be below Limit.
func (b *Set) Add(n int32) { b[n/64] |= 1 << (n % 64) }

// Has reports whether the set contains n.
func (b *Set) Has(n int32) bool { return n < Limit && b[n/64]&(1<<(n%64)) != 0 }

// HasAbove reports whether the set contains a number greater than n.
func (b *Set) HasAbove(n int32) bool {
	for i, w := range b {
		if w != 0 && int32(i*64+bits.Len64(w))-1 > n {
			return true
		}
	}
	return false
}

// Union adds all numbers of the set o.
func (b *Set) Union(o *Set) {
	for i := range b {
		b[i] |= o[i]
	}
}

// List returns the numbers in the set in ascending order.
func (b *Set) List() []int32 {
	var out []int32
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			out = append(out, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return out
}
