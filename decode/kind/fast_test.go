package kind

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode/kind/stablehash"
)

// TestFastWaysAgree: what is counted many at a time is what one at a time gives.
func TestFastWaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.ByteRange('0', '9'), rapid.SampledFrom([]byte{0, 0, 1, 'a', 127})), 2, 700).Draw(t, "bytes")
		small := slices.Clone(p)
		for i := range small {
			small[i] &= 0x7f
		}
		weight := rapid.Int64Range(1, 9).Draw(t, "weight")
		fast, slow := newElements(), newElements()
		for rest := small; len(rest) > 0; {
			rest = rest[fast.countSmall(rest, weight):]
		}
		for _, c := range small {
			slow.count(uint64(c), weight)
		}
		if *fast != *slow {
			t.Fatalf("%+v\n%+v", fast, slow)
		}
	})
}

// TestSpans: payloads that are within the range of those before are told from others.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newElements()
		for _, v := range rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(0, 200), rapid.Uint64()), 0, 4).Draw(t, "before") {
			s.count(v, 1)
		}
		p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		want := s.Min <= s.Max
		for _, c := range p {
			want = want && c < 0x80 && uint64(c) >= s.Min && uint64(c) <= s.Max
		}
		if got := s.inRange(p); got != want {
			t.Fatalf("%x within %d to %d: %v", p, s.Min, s.Max, got)
		}
	})
}

// TestSketchCounts: whatever the order, the values with the smallest hashes are kept
// with all of their counts.
func TestSketchCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 60), 0, 300).Draw(t, "values")
		s, counts := &sketch{}, map[uint64]int64{}
		for _, v := range values {
			s.addValue(v)
			counts[v]++
		}
		if s.Full != (len(counts) > sketchSize) || len(s.Items) != min(len(counts), sketchSize) {
			t.Fatalf("%d distinct values: %d items, full %v", len(counts), len(s.Items), s.Full)
		}
		for i, it := range s.Items {
			if it.Count != counts[it.Value] || it.Hash != stablehash.Mix(it.Value) || i > 0 && it.Hash <= s.Items[i-1].Hash {
				t.Fatalf("%+v: seen %d times", it, counts[it.Value])
			}
		}
	})
}
