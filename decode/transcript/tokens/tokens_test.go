package tokens

import (
	"maps"
	"testing"

	"unwire/decode/transcript/naming"
)

// TestFit: numbers are assigned by their order and the sizes of the texts; other numbers are no tokens.
func TestFit(t *testing.T) {
	const input, output, cached, total = naming.Input, naming.Output, naming.Cached, naming.Total
	for name, c := range map[string]struct {
		numbers     []int64
		said, asked float64
		want        map[int]int
	}{
		"input, output":               {[]int64{50, 100}, 400, 200, map[int]int{input: 0, output: 1}},
		"total and cached":            {[]int64{50, 100, 150, 10}, 400, 200, map[int]int{input: 0, output: 1, total: 2, cached: 3}},
		"output first":                {[]int64{100, 5000}, 400, 20000, map[int]int{input: 1, output: 0}},
		"a model before the two":      {[]int64{7, 5000, 100, 5100}, 400, 20000, map[int]int{input: 1, output: 2, total: 3, cached: 0}},
		"an output of the wrong size": {[]int64{2, 90000}, 400, 200, nil},
		"negative":                    {[]int64{50, -1}, 400, 200, nil},
		"too large":                   {[]int64{1 << 30, 100}, 400, 200, nil},
	} {
		if got := Fit(c.numbers, c.said, c.asked); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
