package render

import "testing"

func TestEndedText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string][2]string{
		"with the code internal: it broke": {"internal", "it broke"},
		"with the code internal":           {"internal", ""},
		"with an error: it broke":          {"", "it broke"},
		"with an error without a message":  {"", ""},
	} {
		if got := endedText(c[0], c[1]); got != want {
			t.Errorf("%q is %q, want %q", c, got, want)
		}
	}
}
