package diff

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func marked(list []Segment) string {
	var b strings.Builder
	for _, s := range list {
		switch s.Op {
		case Add:
			fmt.Fprintf(&b, "{+%s+}", s.Text)
		case Remove:
			fmt.Fprintf(&b, "[-%s-]", s.Text)
		default:
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func TestWords(t *testing.T) {
	for _, c := range [][3]string{
		{"the sky is blue.", "the sky is grey.", "the sky is [-blue-]{+grey+}."},
		{"", "new", "{+new+}"},
		{"one two", "one two three", "one two{+ three+}"},
		{"日本語のテキスト", "日本語の文", "[-日本語のテキスト-]{+日本語の文+}"},
		{"same", "same", "same"},
	} {
		if got := marked(Words(c[0], c[1], false)); got != c[2] {
			t.Errorf("%q to %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	if got := marked(Words("a\nb\nc\n", "a\nx\nc\n", true)); got != "a\n[-b\n-]{+x\n+}c\n" {
		t.Errorf("lines: %q", got)
	}
}

func TestWordsRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab .\né日")))
		old, now := text.Draw(t, "old"), text.Draw(t, "now")
		for _, list := range [][]Segment{Words(old, now, false), Words(old, now, true), ends(old, now)} {
			var a, b string
			for _, s := range list {
				if s.Op != Add {
					a += s.Text
				}
				if s.Op != Remove {
					b += s.Text
				}
			}
			if a != old || b != now {
				t.Fatalf("%q to %q gave %q", old, now, list)
			}
		}
	})
}
