package answer

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInert(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"plain ASCII, größer, 日本語, Ελληνικά", "plain ASCII, größer, 日本語, Ελληνικά"},
		{"</recorded> & <b>", `\u003c/recorded\u003e \u0026 \u003cb\u003e`},
		{"a\u202eb\u2066c\u200bd", `a\u202eb\u2066c\u200bd`}, // directions, no space
		{"\U000e0049\U000e0047", `\udb40\udc49\udb40\udc47`}, // tags: invisible, but read by models
		{"x\ufe0fy\U000e0100", `x\ufe0fy\udb40\udd00`},       // variation selectors
		{"\u007f\u0085\ufeff", `\u007f\u0085\ufeff`},
		{"\u2028\u2029\u00ad", `\u2028\u2029\u00ad`},
		{"😀", "😀"},
	} {
		if got := string(Inert([]byte(`"` + c.text + `"`))); got != `"`+c.want+`"` {
			t.Errorf("%+q: %s, want %s", c.text, got, c.want)
		}
	}
}

// FuzzInert: the value of JSON stays the same, and nothing is in it that is not seen.
func FuzzInert(f *testing.F) {
	f.Add("a\u202e\U000e0041<\x00\x7f\xff😀")
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		inert := Inert([]byte(b.String()))
		var before, after map[string]string
		if err := json.Unmarshal([]byte(b.String()), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(inert, &after); err != nil || before["text"] != after["text"] {
			t.Fatalf("%q became %q: %v", before["text"], after["text"], err)
		}
		if !utf8.Valid(inert) || strings.ContainsAny(string(inert), "<>&\n\u202e\u200b\ufeff") {
			t.Fatalf("%q", inert)
		}
	})
}
