package strictjson

import (
	"encoding/json"
	"testing"
)

// FuzzRead reads texts of any kind. What it accepts, encoding/json reads alike.
func FuzzRead(f *testing.F) {
	type inner struct {
		Name string `json:"name"`
		N    int32  `json:"n"`
	}
	type outer struct {
		V    int               `json:"v"`
		List []inner           `json:"list"`
		One  *inner            `json:"one"`
		Map  map[string]string `json:"map"`
		Any  json.RawMessage   `json:"any"`
		Yes  bool              `json:"yes"`
	}
	for _, text := range []string{"", "{}", "null", `{"v":1,"list":[{"name":"a","n":2}],"one":{},"map":{"a":"b"},"any":[1],"yes":true}`, `{"v":1,"v":2}`, `{"x":1}`, `{"list":[{"nmae":""}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		Glimpse(data)
		var strict, lenient outer
		if Read(data, &strict) != nil {
			return
		}
		if err := json.Unmarshal(data, &lenient); err != nil {
			t.Fatalf("%q: accepted, but %v", data, err)
		}
		a, err := json.Marshal(strict)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(lenient)
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("%q: read as %s, want %s", data, a, b)
		}
	})
}
