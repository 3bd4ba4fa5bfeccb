// Package bytecost says what the bytes of one value cost to encode if they are text, numbers, or neither: description
// lengths in thousandths of a nat.
//
// It has no statistics over several values: those, and the choice between the hypotheses, are in package kind.
package bytecost

const (
	// Nat is one nat, in the unit of description lengths: thousandths of a nat.
	Nat = 1000

	// RawByte is ln 256.
	RawByte = 5545
)

const (
	// Head is how many bytes of a payload are scored. The rest is assumed to cost as much per byte.
	Head = 512

	// ProseLen is the size in bytes from which the order of signs in a text is no evidence.
	ProseLen = 32
)

// Extrapolate estimates the cost of a whole payload of size bytes from the cost of its beginning.
func Extrapolate(cost int64, size int) int64 {
	if size <= Head {
		return cost
	}
	return int64(float64(cost) * float64(size) / Head)
}
