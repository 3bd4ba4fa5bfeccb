package redact

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// next passes over nothing that begins there, and over every byte that the
// filter does not admit. It may pass a byte that the filter's hash admits by
// chance, as the look at eight at once that it begins with is another one.
func TestNextMissesNothing(t *testing.T) {
	f := New(Options{}).rules.Load()
	rapid.Check(t, func(t *rapid.T) {
		p, _ := secretBody(t)
		i := rapid.IntRange(0, len(p)).Draw(t, "from")
		admitted := i
		for admitted+2 < len(p) && !f.admits(p[admitted:]) && !isAlone(p[admitted]) {
			admitted++
		}
		got := f.next(p, i)
		if got < admitted {
			t.Fatalf("from %d: %d, the filter admits nothing before %d of %q", i, got, admitted, p)
		}
		for at := i; at < got; at++ {
			if f.begins(p[at:]) {
				t.Fatalf("from %d: %d, but something begins at %d of %q", i, got, at, p)
			}
		}
	})
}

func isAlone(c byte) bool { return strings.IndexByte(`"&?=:>`, c) >= 0 }

// begins says whether p, of which four bytes count, begins as something that
// is looked for, or as much of it as there is.
func (f *ruleset) begins(p []byte) bool {
	p = p[:min(4, len(p))]
	if strings.IndexByte(`"&?`, p[0]) >= 0 && (len(p) < 2 || p[1] == 'a') || strings.HasPrefix("://"[:min(3, len(p))], string(p[:min(3, len(p))])) || strings.HasPrefix("----", string(p)) {
		return true
	}
	for _, list := range f.literals {
		for _, l := range list {
			if strings.HasPrefix(l.spelt, string(p)) {
				return true
			}
		}
	}
	for _, list := range f.shapes {
		for _, s := range list {
			run, isWhole := bytes.CutPrefix(p, []byte(s.Prefix))
			if strings.HasPrefix(s.Prefix, string(p)) || isWhole && !slices.ContainsFunc(run, func(c byte) bool { return !s.Follows(c) }) {
				return true
			}
		}
	}
	return false
}
