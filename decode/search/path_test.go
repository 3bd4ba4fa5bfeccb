package search

import "testing"

func TestParsePathErrors(t *testing.T) {
	for _, s := range []string{"", "1..2", "1[", "1[x]", "[1]", "1[2][3]", "1!gzip.2", "**[1]"} {
		if _, err := ParsePath(s); err == nil {
			t.Errorf("%q is a path", s)
		}
	}
}
