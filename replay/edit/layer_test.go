package edit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/replay/internal/samples"
)

// wrapped are forms in which a message may lie in a field.
var wrapped = map[string]func([]byte) []byte{
	"hex":       func(b []byte) []byte { return hex.AppendEncode(nil, b) },
	"base64":    func(b []byte) []byte { return base64.StdEncoding.AppendEncode(nil, b) },
	"base64url": func(b []byte) []byte { return base64.RawURLEncoding.AppendEncode(nil, b) },
	"gzip": func(b []byte) []byte {
		out, err := envelope.Compress("gzip", b)
		if err != nil {
			panic(err)
		}
		return out
	},
}

// An edit inside layers changes the value there and the lengths around it: all
// else stays, byte for byte, and the edit the other way gives the same message.
func TestEditInsideLayersKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := samples.Message(t, 2)
		text := rapid.StringMatching(`[a-z]{4,30}`).Draw(t, "text")
		other := rapid.StringMatching(`[a-z]{4,30}`).Draw(t, "other")
		inner := AppendField(AppendField(bytes.Clone(samples.Message(t, 1)), 900, wire.Len, []byte(text)), 901, wire.Varint, []byte{7})
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"hex", "base64", "base64url", "gzip"}), 1, 3).Draw(t, "layers")
		make := func(inner []byte) []byte {
			for i := len(names) - 1; i >= 0; i-- {
				inner = wrapped[names[i]](inner)
			}
			return AppendField(AppendField(bytes.Clone(before), 800, wire.Len, inner), 801, wire.Varint, []byte{1})
		}
		path := "800!" + strings.Join(names, "!") + ".900"
		data := make(inner)
		got := apply(t, "set", path+":string="+other, data)
		want := make(bytes.Replace(inner, AppendField(nil, 900, wire.Len, []byte(text)), AppendField(nil, 900, wire.Len, []byte(other)), 1))
		if !bytes.Equal(got, want) {
			t.Fatalf("%s\n%x, want\n%x", path, got, want)
		}
		if back := apply(t, "set", path+":string="+text, got); !bytes.Equal(back, data) {
			t.Fatalf("%s, back\n%x, was\n%x", path, back, data)
		}
	})
}

func TestEditInsideLayers(t *testing.T) {
	inner := AppendField(nil, 1, wire.Len, []byte("hello there"))
	body := `{"messages":[{"role":"user","content":"hi"}]}`
	nest := func(b []byte) []byte { return AppendField(nil, 3, wire.Len, b) }
	gz := wrapped["gzip"]
	for _, c := range []struct {
		op, text  string
		isJSON    bool
		data      []byte
		want, err string
	}{
		{"set", "3!gzip.1=bye", false, nest(gz(inner)), string(nest(gz(AppendField(nil, 1, wire.Len, []byte("bye"))))), ""},
		{"set", "3.1=bye", false, nest(gz(inner)), string(nest(gz(AppendField(nil, 1, wire.Len, []byte("bye"))))), ""},
		{"set", "3.1=bye", false, nest([]byte(hex.EncodeToString(inner))), string(nest([]byte(hex.EncodeToString(AppendField(nil, 1, wire.Len, []byte("bye")))))), ""},
		{"set", "3!hex.1=bye", false, nest([]byte(strings.ToUpper(hex.EncodeToString(inner)))), string(nest([]byte(strings.ToUpper(hex.EncodeToString(AppendField(nil, 1, wire.Len, []byte("bye"))))))), ""},
		{"set", "3!json.messages[0].content=bye", false, nest([]byte(body)), string(nest([]byte(strings.Replace(body, `"hi"`, `"bye"`, 1)))), ""},
		{"set", "3.messages[0].content=bye", false, nest([]byte(body)), string(nest([]byte(strings.Replace(body, `"hi"`, `"bye"`, 1)))), ""},
		{"add", "3!gzip!json.x:int32=5", false, nest(gz([]byte(`{"a":1}`))), string(nest(gz([]byte(`{"a":1,"x":5}`)))), ""},
		{"del", "3!gzip.1", false, nest(gz(inner)), string(nest(gz(nil))), ""},
		{"raw", "3!hex=0801", false, nest([]byte("0a00")), string(nest([]byte("0801"))), ""},
		{"set", "3!gzip=plain text", false, nest(gz([]byte("old text"))), string(nest(gz([]byte("plain text")))), ""},
		{"set", "body.messages[0].content=bye", true, []byte(`{"n":1, "body":` + quoted(body) + `}`), `{"n":1, "body":` + quoted(strings.Replace(body, `"hi"`, `"bye"`, 1)) + `}`, ""},
		{"set", "data!base64.1=bye", true, []byte(`{"data":"` + base64.StdEncoding.EncodeToString(inner) + `"}`), `{"data":"` + base64.StdEncoding.EncodeToString(AppendField(nil, 1, wire.Len, []byte("bye"))) + `"}`, ""},
		{"retype", "3!gzip.1:bytes", false, nest(gz(inner)), string(nest(gz(inner))), ""},
		{"set", "3!hex.1=x", false, nest([]byte("no hex")), "", "the field 3 does not contain hex"},
		{"set", "3!gzip.1=x", false, nest([]byte("plain")), "", "the field 3 does not contain gzip"},
		{"set", "3!json.a=x", false, nest([]byte("plain")), "", "the field 3 does not contain json"},
		{"set", "4!hex.1=x", false, nest([]byte("00")), "", "4 is not a single text or bytes"},
		{"set", "3!gzip.9=x", false, nest(gz(inner)), "", "the value inside 3!gzip cannot be edited: the message has no field 9"},
		{"add", "3!gzip:string=x", false, nest(gz(inner)), "", "the path of a value is missing after the encoding"},
	} {
		e, err := Parse(c.op, c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.apply(c.data, c.isJSON, nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", e, err, c.err)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", e, got, err, c.want)
		}
	}
	if _, err := Parse("set", "3!zip.1=x"); err == nil || !strings.Contains(err.Error(), `"zip" is not an encoding that unwire can decode: use hex, base64`) {
		t.Error(err)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
