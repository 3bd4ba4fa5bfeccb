package names

import (
	"slices"
	"testing"
)

func TestKeys(t *testing.T) {
	var k Keys
	if got := k.Sorted(); got == nil || len(got) != 0 {
		t.Errorf("%q of nothing", got)
	}
	for _, data := range []string{`{"b":{"a":1}}`, ` [{"a":2,"c":[]}]`, `"d"`, `{"e":`, "\x00"} {
		k.AddJSON([]byte(data))
	}
	if got := k.Sorted(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}
