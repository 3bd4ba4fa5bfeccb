package walk

import (
	"encoding/json"
	"testing"
)

// FuzzJSON replaces the strings of texts of any kind by themselves: what comes out means the same.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{"", "1", `"a"`, `{"b":[1,"x",null,{"c":"d"}],"a":1e999}`, `{"a":"\ud800","\u0000":"</script>"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		same := func(s string) (string, error) { return s, nil }
		out, err := JSON(data, same)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q, which is no JSON", data, out)
		}
		again, err := JSON(out, same)
		if err != nil || string(again) != string(out) {
			t.Errorf("%q became %q, then %q: %v", data, out, again, err)
		}
	})
}
