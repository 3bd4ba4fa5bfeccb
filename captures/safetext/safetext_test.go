package safetext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"unwire/captures/safetext"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":         "plain",
		"Grüße 你好":      "Grüße 你好",
		"\x1b[31mred":   `\x1b[31mred`,
		"a\nb\tc\r":     `a\nb\tc\r`,
		"bad\xff":       `bad\xff`,
		"x\u202ey":      `x\u202ey`,
		"\u009b31m":     `\u009b31m`,
		"line\u2028sep": `line\u2028sep`,
	} {
		if got := safetext.Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
	if got := safetext.Lines("a\nb\t\x1b"); got != "a\nb\t\\x1b" {
		t.Errorf("Lines keeps newline and tab only: %q", got)
	}
}

// Every character is escaped or as it was, and JSON means the same.
func TestEveryCharacter(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		if line := safetext.Line(s); strings.ContainsFunc(line, safetext.IsUnsafe) || !safetext.IsUnsafe(r) && line != s {
			t.Fatalf("%U becomes %q", r, line)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		safe := safetext.JSON(text)
		var back string
		if err := json.Unmarshal(safe, &back); err != nil || back != s || strings.ContainsFunc(string(safe), safetext.IsUnsafe) {
			t.Fatalf("%U becomes %q: %v", r, safe, err)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte("{\"a\":\"\u202e\u009b\x7f\"}\n"))
	f.Add([]byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after any
		safe := safetext.JSON(append([]byte{}, data...))
		if json.Unmarshal(data, &before) != nil {
			return
		}
		if err := json.Unmarshal(safe, &after); err != nil {
			t.Fatalf("%q became %q: %v", data, safe, err)
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if string(a) != string(b) {
			t.Errorf("%q became %q", data, safe)
		}
		safetext.Lines(safetext.Line(string(data)))
	})
}
