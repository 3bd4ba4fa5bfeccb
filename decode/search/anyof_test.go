package search

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestAnyOf: the first match is the one that a search for each text finds.
func TestAnyOf(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	random := func(least, most int) []byte {
		p := make([]byte, least+r.IntN(most-least+1))
		for i := range p {
			p[i] = "ab\x00\xff"[r.IntN(4)]
		}
		return p
	}
	for range 5000 {
		var texts []*Text
		for range 1 + r.IntN(5) {
			texts = append(texts, &Text{literal: random(leastInSet, 12)})
		}
		all, ok := AnyOf(texts)
		if !ok {
			t.Fatal("literals are refused")
		}
		data := random(0, 60)
		from := r.IntN(len(data) + 1)
		first := -1
		for _, one := range texts {
			if k := bytes.Index(data[from:], one.literal); k >= 0 && (first < 0 || from+k < first) {
				first = from + k
			}
		}
		lo, hi, found := all.find(data, from)
		if found != (first >= 0) || found && (lo != first || hi <= lo) {
			t.Fatalf("found %v at %d in %q from %d, want %d", found, lo, data, from, first)
		}
	}
	for _, pattern := range []string{"a", "", "x+y"} {
		text, err := NewText(pattern, pattern != "x+y", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := AnyOf([]*Text{text}); ok {
			t.Errorf("%q is accepted", pattern)
		}
	}
}
