package query

import (
	"path/filepath"
	"testing"

	"unwire/schema/infer"
)

// TestInference: the evidence is of all captures, and of one exchange
// where an address names it.
func TestInference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "text", "more text", "still more")
	capture := open(t, path)
	g := Inference{Evidence: infer.NewEvidence()}
	for _, name := range []string{path, path + "#2"} {
		if remarks, err := g.Add(t.Context(), capture, ParseAddress(name)); err != nil || len(remarks) > 0 {
			t.Fatal(remarks, err)
		}
	}
	m := g.Evidence.Root("/a.B/C:up")
	if m == nil || m.Samples != 4 || g.JSONCalls != 0 {
		t.Errorf("%+v, %d calls in JSON", m, g.JSONCalls)
	}
}
