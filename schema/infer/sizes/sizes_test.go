package sizes

import (
	"math"
	"testing"
)

// TestEvidence: the same sizes are evidence for one field, the more so if they are rare; other sizes are evidence
// against it, within limits.
func TestEvidence(t *testing.T) {
	of := func(sizes ...int) (c Counts) {
		for _, size := range sizes {
			c[size]++
		}
		return c
	}
	small, large, mixed := of(1, 1, 1), of(41, 41, 41), of(3, 4, 4, 5)
	for _, c := range []struct {
		name        string
		a, b        Counts
		least, most float64
	}{
		{"same rare size", large, large, mostEvidence, mostEvidence},
		{"same common size", small, small, 0.3, 1.5},
		{"same mixture", mixed, mixed, 0.3, 1.5},
		{"other sizes", small, large, math.Log(1 - same), -0.5},
		{"no values", Counts{}, large, 0, 0},
	} {
		got, back := Evidence(c.a, c.b), Evidence(c.b, c.a)
		if got < c.least || got > c.most || got != back {
			t.Errorf("%s: %.3f, in the other order %.3f, want %.3f to %.3f", c.name, got, back, c.least, c.most)
		}
	}
}

// TestOfLength: sizes of payloads are ascending and within the counts.
func TestOfLength(t *testing.T) {
	last := -1
	for _, n := range []uint64{0, 1, 31, 32, 36, 64, 100, 400, math.MaxUint64} {
		size := OfLength(n)
		if size <= last || size >= len(Counts{}) {
			t.Errorf("length %d has size %d, after %d", n, size, last)
		}
		last = size
	}
}
