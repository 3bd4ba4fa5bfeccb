package compare

import "testing"

// TestOutdated: definitions that have a change are up to date, and others are not.
func TestOutdated(t *testing.T) {
	older := schemaOf(t, `message M { string a = 1; int32 b = 2; }`)
	newer := schemaOf(t, `message M { string a = 1; int64 b = 2; string c = 3; }`)
	half := schemaOf(t, `message M { string a = 1; int32 b = 2; string c = 3; }`)
	changes := Diff(older, newer)
	if len(changes) != 2 {
		t.Fatalf("%v", changes)
	}
	for i, outdated := range Outdated(changes, half, newer) {
		if want := changes[i].Change == retyped; outdated != want {
			t.Errorf("%s: %v, want %v", changes[i], outdated, want)
		}
	}
	for i, outdated := range Outdated(changes, older, newer) {
		if !outdated {
			t.Errorf("%s is not outdated in the older version", changes[i])
		}
	}
}
