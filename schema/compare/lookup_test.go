package compare

import (
	"errors"
	"slices"
	"testing"
)

func TestLookup(t *testing.T) {
	s := schemaOf(t, `message Alpha { message Part {} } message Beta { message Part {} } message Gamma {}`)
	var e *LookupError
	if d, err := Lookup(s, "Gamma"); err != nil || d.Name() != "Gamma" {
		t.Errorf("a simple name: %v, %v", d, err)
	}
	full, err := Lookup(s, "Gamma")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Lookup(s, string(full.FullName())); err != nil || d != full {
		t.Errorf("a full name: %v, %v", d, err)
	}
	if _, err := Lookup(s, "Part"); !errors.As(err, &e) || len(e.Found) != 2 || len(e.Similar) != 0 {
		t.Errorf("a name of two messages: %v", err)
	}
	if _, err := Lookup(s, "Gama"); !errors.As(err, &e) || len(e.Found) != 0 || !slices.Contains(e.Similar, string(full.FullName())) {
		t.Errorf("a name with a typing error: %+v", e)
	}
}
