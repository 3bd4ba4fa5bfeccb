package fields

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
)

// TestSections: sections come back, and the quick way to write one writes what JSON does.
func TestSections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := captures.Headers(rapid.SliceOf(rapid.Custom(func(t *rapid.T) captures.Header {
			text := rapid.OneOf(rapid.StringMatching(`[ -~]*`), rapid.String())
			return captures.Header{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
		})).Draw(t, "headers"))
		if quick, ok := encodePlain(h); ok && quick != encodeEscaped(h) {
			t.Fatalf("%s, JSON has %s", quick, encodeEscaped(h))
		}
		size := 2
		for _, f := range h {
			size += Size(f)
		}
		if got, err := Parse(Text(h)); err != nil || !slices.Equal(got, h) || size < len(Text(h)) {
			t.Fatalf("%q: %q, %v, %d bytes", h, got, err, size)
		}
	})
}
