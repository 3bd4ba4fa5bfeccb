package values

import (
	"slices"
	"testing"
)

// Generated names may begin and end with the characters that separate words.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"call-7":                             {"call", "7"},
		"done _WXtFQOt8Ut3VEfZi8GlL":         {"done", "_WXtFQOt8Ut3VEfZi8GlL"},
		"-ESSJ5HS_yjzLTOSEqT-W":              {"-ESSJ5HS_yjzLTOSEqT-W"},
		"3q9Yk2hZ_-":                         {"3q9Yk2hZ_-"},
		"call_-3q9Yk2hZ":                     {"call", "-3q9Yk2hZ"},
		"call_3q9Yk2hZ":                      {"call", "3q9Yk2hZ"},
		"run -v --name _x - 7":               {"run", "v", "name", "x", "7"},
		"a -1 b_ _c-":                        {"a", "1", "b", "c"},
		"id=4f3a9b2c1d0e, next=4f3a9b2c1d0f": {"id", "4f3a9b2c1d0e", "next", "4f3a9b2c1d0f"},
	} {
		var l Leaf
		l.SetText([]byte(text))
		var got []string
		for _, w := range l.Words() {
			got = append(got, w.Value)
			if word, ok := l.WordAt(w.At); !ok || word != w.Value {
				t.Errorf("%q: at %s is %q, not %q", text, w.At, word, w.Value)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// An identifier of hexadecimal digits may have only decimal ones, and so be a number in JSON.
func TestWordOfDigitsInJSON(t *testing.T) {
	for was, is := range map[string]string{`{"id":"30cf719e16bc"}`: "995124902249", `{"id":"995124902249"}`: "30cf719e16bc"} {
		d := Open([]byte(was), false)
		l := d.At("id")
		w := l.Words()
		if len(w) != 1 || w[0].At != firstRun {
			t.Fatalf("%s: %+v", was, w)
		}
		out, err := d.ReplaceWord(l, w[0].At, w[0].Value, is)
		if want := `{"id":"` + is + `"}`; err != nil || string(out) != want {
			t.Errorf("%s: %s, %v", was, out, err)
		}
	}
}

// A whole value is a word, whatever characters it begins with.
func TestWholeValueAsAWord(t *testing.T) {
	for _, text := range []string{"_TZdxjlkWP_g_zBFFZTYi", "30cf719e16bc", "995124902249", "call 7"} {
		l := Number("id", text)
		if word, ok := l.WordAt(""); !ok || word != text {
			t.Errorf("%q: %q", text, word)
		}
		out, left := l.WithoutWords(map[string]bool{"": true})
		if out.Text() != carriedMark || len(left) != 1 || left[0] != (Word{"", text}) {
			t.Errorf("%q: %q, %+v", text, out.Text(), left)
		}
	}
}

func TestIsRandomName(t *testing.T) {
	for s, want := range map[string]bool{
		"V1StGXR8_Z": true, "k3j9x2m4p1": true, "x7Kp_2Lm9Q": true,
		"": false, "gpt-4o-mini": false, "claude-3-opus": false, "ReadFileContents": false, "brave-otter-42": false,
		"2026-11-28": false, "report2024final": false, "src/v1a2b3c4": false, "getItem2": false, "a1b2": false,
	} {
		if got := IsRandomName(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestReplaceDigits(t *testing.T) {
	for in, want := range map[string]string{
		"run 46518230": "run 7", "46518230": "7", "a46518230": "a46518230", "146518230, 46518230.": "146518230, 7.", "": "",
	} {
		if got, changed := ReplaceDigits(in, "46518230", "7"); got != want || changed != (in != want) {
			t.Errorf("%q became %q", in, got)
		}
	}
}
