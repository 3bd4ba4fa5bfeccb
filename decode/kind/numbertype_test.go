package kind

import "testing"

// TestZeroesAndOnes checks which fields are declared as bool: those for which it is the most probable type.
func TestZeroesAndOnes(t *testing.T) {
	for _, c := range []struct {
		name        string
		ones, zeros int
		use         Use
		want        string
	}{
		{"one value of the first field", 1, 0, Use{Number: 1}, "bool"},
		{"ten values of the first field", 10, 0, Use{Number: 1}, "bool"},
		{"one value of a later field", 1, 0, Use{Number: 9}, "bool"},
		{"keys of a map", 10, 0, Use{Number: 1, Key: true}, "int32"},
		{"zeros only", 0, 10, Use{Number: 3}, "int32"},
		{"zeros and ones", 5, 5, Use{Number: 3}, "bool"},
	} {
		s := newVarints()
		for i := range c.ones + c.zeros {
			v := uint64(0)
			if i < c.ones {
				v = 1
			}
			s.addValue(v, 1)
		}
		if got := varintType(s, c.use); got.Name != c.want {
			t.Errorf("%s: %s with probability %.2f, not %s", c.name, got.Name, got.P, c.want)
		}
	}
}
