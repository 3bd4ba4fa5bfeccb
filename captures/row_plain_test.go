package captures

import (
	"testing"

	"pgregory.net/rapid"
)

// The quick way to write headers writes what JSON does.
func TestPlainHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Headers(rapid.SliceOf(rapid.Custom(func(t *rapid.T) Header {
			text := rapid.OneOf(rapid.StringMatching(`[ -~]*`), rapid.String())
			return Header{text.Draw(t, "name"), text.Draw(t, "value")}
		})).Draw(t, "headers"))
		if quick, ok := plainHeaders(h); ok && quick != jsonHeaders(h) {
			t.Fatalf("%s, JSON has %s", quick, jsonHeaders(h))
		}
	})
}

// next stops where something may begin, as a look at every byte does.
func TestNextMissesNothing(t *testing.T) {
	f := DefaultRedactor().rules.Load()
	rapid.Check(t, func(t *rapid.T) {
		p, _ := secretBody(t)
		i := rapid.IntRange(0, len(p)).Draw(t, "from")
		want := i
		for want+2 < len(p) && !f.admits(p[want], p[want+1], p[want+2]) && p[want] != '"' && p[want] != '&' && p[want] != '?' {
			want++
		}
		if got := f.next(p, i); got < want || want+2 < len(p) && got != want {
			t.Fatalf("from %d: %d, not %d, of %q", i, got, want, p)
		}
	})
}
