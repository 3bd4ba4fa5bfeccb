package sources

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// partsGen draws parts of few methods and segments, so that they overlap.
func partsGen() *rapid.Generator[Parts] {
	return rapid.Custom(func(t *rapid.T) (ps Parts) {
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			p := Part{Method: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "method"), Day: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "day")}
			ps = ps.Merge(Parts{{p, [][]byte{{rapid.ByteRange(0, 3).Draw(t, "segment")}}}})
		}
		return ps
	})
}

func TestPartsMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := partsGen().Draw(t, "a"), partsGen().Draw(t, "b"), partsGen().Draw(t, "c")
		ab := a.Merge(b)
		for what, other := range map[string]Parts{"b+a": b.Merge(a), "a+b+b": ab.Merge(b)} {
			if d := cmp.Diff(ab, other); d != "" {
				t.Errorf("%s: %s", what, d)
			}
		}
		if d := cmp.Diff(ab.Merge(c), a.Merge(b.Merge(c))); d != "" {
			t.Error(d)
		}
		if err := ab.Check(); err != nil {
			t.Error(err)
		}
		if len(b) > 0 && ab.Share(b) != 1 {
			t.Errorf("%v of b is in a+b", ab.Share(b))
		}
		for _, p := range b {
			for _, s := range p.Segments {
				found := false
				for _, have := range ab.Segments(p.Part) {
					found = found || bytes.Equal(have, s)
				}
				if !found {
					t.Errorf("%x of %+v is lost", s, p.Part)
				}
			}
		}
	})
}

func TestPartsShare(t *testing.T) {
	t.Parallel()
	a := Parts{{Part{Method: "m", Direction: "up"}, [][]byte{{1}, {2}}}}
	for share, b := range map[float64]Parts{
		0:   {{Part{Method: "m", Direction: "down"}, [][]byte{{1}, {2}}}},
		0.5: {{Part{Method: "m", Direction: "up"}, [][]byte{{2}, {3}}}},
		1:   {{Part{Method: "m", Direction: "up"}, [][]byte{{2}}}},
	} {
		if got := a.Share(b); got != share {
			t.Errorf("%v of %v is shared, want %v", got, b, share)
		}
	}
	if a.Share(nil) != 0 || Parts(nil).Share(a) != 0 {
		t.Error("nothing is shared with nothing")
	}
}

func TestPartsCheck(t *testing.T) {
	t.Parallel()
	for name, ps := range map[string]Parts{
		"no segments":   {{Part{}, nil}},
		"an empty hash": {{Part{}, [][]byte{{}}}},
		"a long hash":   {{Part{}, [][]byte{make([]byte, 65)}}},
		"twice":         {{Part{}, [][]byte{{1}, {1}}}},
		"not in order":  {{Part{Method: "b"}, [][]byte{{1}}}, {Part{Method: "a"}, [][]byte{{1}}}},
		"a long name":   {{Part{Client: string(make([]byte, 5000))}, [][]byte{{1}}}},
	} {
		if ps.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
