package kind

import "math/bits"

// A bitset is a set of field numbers below LowNumbers (higher numbers are not represented).
type bitset [LowNumbers / 64]uint64

// Set adds the number n, which must be below LowNumbers.
func (b *bitset) Set(n int32) { b[n/64] |= 1 << (n % 64) }

// Has reports whether the set contains n.
func (b *bitset) Has(n int32) bool { return n < LowNumbers && b[n/64]&(1<<(n%64)) != 0 }

// or adds all numbers of the set o.
func (b *bitset) or(o *bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}

// List returns the numbers in the set in ascending order.
func (b *bitset) List() []int32 {
	var out []int32
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			out = append(out, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return out
}
