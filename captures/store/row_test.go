package store

import (
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
)

// The quick way to write headers writes what JSON does.
func TestPlainHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := captures.Headers(rapid.SliceOf(rapid.Custom(func(t *rapid.T) captures.Header {
			text := rapid.OneOf(rapid.StringMatching(`[ -~]*`), rapid.String())
			return captures.Header{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
		})).Draw(t, "headers"))
		if quick, ok := plainHeaders(h); ok && quick != jsonHeaders(h) {
			t.Fatalf("%s, JSON has %s", quick, jsonHeaders(h))
		}
	})
}
