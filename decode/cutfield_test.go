package decode

import (
	"bytes"
	"encoding/json"
	"testing"

	"unwire/decode/text"
	"unwire/decode/wire"
)

// In JSON, the part of a field that is cut off comes with the garbage, which has all of
// its bytes.
func TestCutField(t *testing.T) {
	whole, err := text.Parse([]byte(`1: {"hello world"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(View{}.Fields(wire.Parse(whole[:8], wire.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"wire":"garbage","off":0,"len":8`, `"value":"CgtoZWxsbyA="`, `"cut":{"n":1,"wire":"len","off":0,"len":8,"val":2,"kind":"string","type":"string","value":"hello "`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}
