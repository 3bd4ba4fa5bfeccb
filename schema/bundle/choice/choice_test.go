package choice

import (
	"slices"
	"testing"
)

// TestOf: numbers cover those that divide them.
func TestOf(t *testing.T) {
	covers := func(a, b int) bool { return a%b == 0 }
	c := Of(t.Context(), []int{2, 3, 4, 12, 5, 10, 3}, covers)
	if want := []int{12, 10}; !slices.Equal(c.Kept, want) {
		t.Errorf("kept %v, want %v", c.Kept, want)
	}
	for n, by := range map[int]int{2: 12, 3: 12, 4: 12, 5: 10} {
		if c.Same[n] != by {
			t.Errorf("%d is covered by %d, want %d", n, c.Same[n], by)
		}
	}
}

// TestMax: later ones are dropped, unless one that was kept covers them.
func TestMax(t *testing.T) {
	var list []int
	for i := range 2 * Max {
		list = append(list, i)
	}
	c := Of(t.Context(), append(list, 0), func(a, b int) bool { return a == b })
	if len(c.Kept) != Max || len(c.Dropped) != Max || len(c.Same) != 0 {
		t.Errorf("%d kept, %d dropped, %d covered", len(c.Kept), len(c.Dropped), len(c.Same))
	}
}
