package names

import "testing"

// An error's text is read without a panic.
func FuzzJSONError(f *testing.F) {
	f.Add(`cannot decode field a.B.c from JSON: expected number (int32), got 1000000.5`)
	f.Add("proto: (line 1:20): invalid value for int32 field a: 1000000.5")
	f.Fuzz(func(t *testing.T, message string) {
		kindES(message)
		if i := candidateOf(message, []string{"a", "b"}, []int{1, 20, 40}); i >= 2 {
			t.Errorf("hit %d of 2", i)
		}
		for _, as := range []int{asNumber, asText, asList, asNulls, asMap, asAny} {
			readES("a", message, "", as)
			readGo("a", message, as)
		}
	})
}
