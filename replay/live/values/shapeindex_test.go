package values

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestShapeIndex compares the messages that the index finds with those of all shapes that match.
func TestShapeIndex(t *testing.T) {
	names := func(r *rand.Rand, most int) (list []string) {
		for range r.IntN(most + 1) {
			list = append(list, string(rune('a'+r.IntN(5))))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var x ShapeIndex
		var shapes []Shape
		for i := range 40 {
			s := Shape{top: names(r, 3), maybe: names(r, r.IntN(3)), sub: names(r, r.IntN(4))}
			shapes = append(shapes, s)
			x.Add(s, i)

			var want []int
			for k, o := range shapes {
				if o.Matches(s) {
					want = append(want, k)
				}
			}
			if got := x.Matching(s); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v match %+v, want %v", seed, got, s, want)
			}
			for k := range shapes {
				n, _ := slices.BinarySearch(want, k+1)
				if got := x.Count(s, k); got != n {
					t.Fatalf("seed %d: %d up to message %d match %+v, want %d", seed, got, k, s, n)
				}
			}
		}
	}
}
