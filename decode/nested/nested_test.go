package nested

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"unwire/decode/envelope"
)

const hello = "\x0a\x05hello\x10\x96\x01\x1a\x06\x0a\x04more"

func compress(t testing.TB, encoding string, b []byte) []byte {
	t.Helper()
	out, err := envelope.Compress(encoding, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFind(t *testing.T) {
	gz := compress(t, "gzip", []byte(hello))
	for _, c := range []struct {
		name, in, encoding string
		form               Form
		data               string
	}{
		{"hex", hex.EncodeToString([]byte(hello)), "hex", Message, hello},
		{"upper hex", strings.ToUpper(hex.EncodeToString([]byte(hello))), "hex", Message, hello},
		{"base64", base64.StdEncoding.EncodeToString([]byte(hello)), "base64", Message, hello},
		{"unpadded", base64.RawURLEncoding.EncodeToString([]byte(hello + "?")), "", "", ""},
		{"url", base64.URLEncoding.EncodeToString([]byte(hello + "\x22\x03\xfb\xff\xfe")), "base64", Message, hello + "\x22\x03\xfb\xff\xfe"},
		{"gzip", string(gz), "gzip", Message, hello},
		{"zstd", string(compress(t, "zstd", []byte(hello))), "zstd", Message, hello},
		{"gzip in base64", base64.StdEncoding.EncodeToString(gz), "base64+gzip", Message, hello},
		{"gzip in hex", hex.EncodeToString(gz), "hex+gzip", Message, hello},
		{"text in gzip", string(compress(t, "gzip", []byte("just some words"))), "gzip", Bytes, "just some words"},
		{"json", `{"a":[1,2]}`, "", JSON, `{"a":[1,2]}`},
		{"json in base64", base64.StdEncoding.EncodeToString([]byte(`{"a":[1,2]}`)), "base64", JSON, `{"a":[1,2]}`},
		{"frames", string(envelope.Append(nil, 0, []byte(hello))), "", Frames, string(envelope.Append(nil, 0, []byte(hello)))},
		{"frames in base64", base64.StdEncoding.EncodeToString(envelope.Append(nil, 0, []byte(hello))), "base64", Frames, string(envelope.Append(nil, 0, []byte(hello)))},
		{"words", "AgentServiceRunRequest", "", "", ""},
		{"a uuid", "550e8400e29b41d4a716446655440000", "", "", ""},
		{"a hash", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "", "", ""},
		{"prose", "the quick brown fox", "", "", ""},
		{"braces", "{not json at all}", "", "", ""},
		{"cut gzip", string(gz[:len(gz)-9]), "", "", ""},
		{"short", "0801", "", "", ""},
	} {
		var f Finder
		got, ok := f.Find([]byte(c.in))
		if ok != (c.form != "") || got.Encoding != c.encoding || got.Form != c.form || string(got.Data) != c.data || (got.Tree != nil) != (c.form == Message) {
			t.Errorf("%s: %v %q %q %q", c.name, ok, got.Encoding, got.Form, got.Data)
		}
	}
}

// However many bombs there are, few are inflated.
func TestBombs(t *testing.T) {
	bomb := compress(t, "gzip", make([]byte, 100<<20))
	var f Finder
	start := time.Now()
	for range 10_000 {
		if c, ok := f.Find(bomb); ok {
			t.Fatalf("%d bytes", len(c.Data))
		}
	}
	inner := compress(t, "gzip", compress(t, "gzip", []byte(hello)))
	if c, _ := (&Finder{}).Find(inner); c.Form == Message {
		t.Error("compression within compression was followed")
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("%v", took)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(hex.EncodeToString([]byte(hello))))
	f.Add([]byte(base64.RawURLEncoding.EncodeToString([]byte(hello))))
	f.Add(compress(f, "gzip", []byte(hello)))
	f.Add([]byte(`{"a":1}    `))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, ok := (&Finder{}).Find(in)
		if ok && (c.Form == "" || len(c.Data) > MaxInflated && c.Encoding != "") {
			t.Fatalf("%+v", c)
		}
		if ok && c.Form == Message && !bytes.Equal(c.Tree.Append(nil), c.Data) {
			t.Fatal("the tree is not the data's")
		}
		layers, again := c.Layers(in)
		if !ok || !again {
			return
		}
		back, err := Wrap(layers, c.Data)
		if err != nil {
			t.Fatalf("%v: %v", layers, err)
		}
		if strings.Contains(c.Encoding, "gzip") || strings.Contains(c.Encoding, "zstd") {
			if back, err = Unwrap(layers, back); err != nil {
				t.Fatalf("%v: %v", layers, err)
			}
			want, _ := Unwrap(layers, in)
			if !bytes.Equal(back, want) {
				t.Fatalf("%v: another content", layers)
			}
		} else if !bytes.Equal(back, in) {
			t.Fatalf("%v: made again it is %q", layers, back)
		}
	})
}
