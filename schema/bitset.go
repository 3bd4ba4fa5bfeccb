package schema

import "math/bits"

// A bitset is a set of field numbers below lowNumbers.
type bitset [lowNumbers / 64]uint64

func (b *bitset) set(n int32)      { b[n/64] |= 1 << (n % 64) }
func (b *bitset) has(n int32) bool { return n < lowNumbers && b[n/64]&(1<<(n%64)) != 0 }

func (b *bitset) or(o *bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}

// list returns the set's numbers, ascending.
func (b *bitset) list() []int32 {
	var out []int32
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			out = append(out, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return out
}
