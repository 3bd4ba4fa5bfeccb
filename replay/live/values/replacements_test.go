package values

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
)

const oldID, newID = "conv_0123456789abcdef0123", "conv_fedcba98765432100123456789"

// stringField is a message with one text field.
func stringField(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

func TestReplacements(t *testing.T) {
	x := Replacements{oldID: newID, "700001": "900002"}
	b64 := base64.StdEncoding.EncodeToString
	message := func(s string) string { return string(append([]byte{1 << 3, 7}, stringField(2, s)...)) }
	for in, want := range map[string]string{
		oldID:                                  newID,
		"see " + oldID + ", and more":          "see " + newID + ", and more",
		`{"a":[1,"` + oldID + `"],"n":700001}`: `{"a":[1,"` + newID + `"],"n":900002}`,
		`{"a":1700001,"b":700001.5,"c":-700001,"d":"x700001"}`: `{"a":1700001,"b":700001.5,"c":-700001,"d":"x700001"}`,
		b64([]byte(message(oldID))):                            b64([]byte(message(newID))),
		b64([]byte(`{"` + oldID + `":true}`)):                  b64([]byte(`{"` + newID + `":true}`)),
		`{"s":"` + b64([]byte(message(oldID))) + `"}`:          `{"s":"` + b64([]byte(message(newID))) + `"}`,
		`{"s":"{\"id\":\"` + oldID + `\"}"}`:                   `{"s":"{\"id\":\"` + newID + `\"}"}`,
		"nothing of the kind":                                  "nothing of the kind",
		oldID + "x":                                            oldID + "x",
	} {
		got, changed := x.In(in, 0)
		if got != want || changed != (in != want) {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
		data, changed := x.Message([]byte(message(in)), false)
		if string(data) != message(want) || changed != (in != want) {
			t.Errorf("in a message %s became %q, want %q", in, data, message(want))
		}
	}
}

func FuzzReplacements(f *testing.F) {
	f.Add([]byte(`{"a":["` + oldID + `"]}`))
	f.Add(stringField(1, oldID))
	f.Add(stringField(1, base64.StdEncoding.EncodeToString(stringField(2, oldID))))
	f.Add([]byte(oldID))
	x := Replacements{oldID: newID}
	same := Replacements{oldID: oldID}
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, changed := x.proto(data, 0); !changed && !bytes.Equal(out, data) {
			t.Errorf("%q became %q", data, out)
		} else if was := wire.Parse(data, wire.Options{}).Err(); changed && was == nil && wire.Parse(out, wire.Options{}).Err() != nil {
			t.Errorf("%q became %q, which is no message", data, out)
		}
		if out, _ := same.proto(data, 0); !bytes.Equal(out, data) {
			t.Errorf("with the same value %q became %q", data, out)
		}
		if out, changed := x.json(data, 0); changed && !json.Valid(out) {
			t.Errorf("%q became %q, which is no JSON", data, out)
		}
		x.In(string(data), 0)
		left := Budget(MaxTraced)
		PartsOf(data, &left)
	})
}
