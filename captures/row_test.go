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
