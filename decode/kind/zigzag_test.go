package kind

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Zigzag shows in even values, where these are not even because they are round.
func TestZigzagAndRoundNumbers(t *testing.T) {
	for _, c := range []struct {
		name   string
		make   func(*rand.Rand) int64
		zigzag bool
	}{
		{"positive, zigzag", func(r *rand.Rand) int64 { return r.Int64N(1_000_000) }, true},
		{"mostly positive, zigzag", func(r *rand.Rand) int64 {
			if v := r.Int64N(1_000_000); r.IntN(5) > 0 {
				return v
			}
			return -r.Int64N(1_000_000)
		}, true},
		{"any number", func(r *rand.Rand) int64 { return r.Int64N(1_000_000) }, false},
		{"tens", func(r *rand.Rand) int64 { return 10 * r.Int64N(100_000) }, false},
		{"pages", func(r *rand.Rand) int64 { return 4096 * (1 + r.Int64N(100_000)) }, false},
		{"half of them tens", func(r *rand.Rand) int64 {
			if v := r.Int64N(1_000_000); r.IntN(2) == 0 {
				return v
			}
			return 10 * r.Int64N(100_000)
		}, false},
	} {
		wrong := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			s := newVarints()
			for range 200 {
				v := uint64(c.make(r))
				if c.zigzag {
					v = protowire.EncodeZigZag(int64(v))
				}
				s.addValue(v, protowire.SizeVarint(v))
			}
			if got := varintType(s, Use{}).Name; (got == "sint32" || got == "sint64") != c.zigzag {
				wrong++
			}
		}
		if wrong > 1 {
			t.Errorf("%s: wrong in %d of 20", c.name, wrong)
		}
	}
}
