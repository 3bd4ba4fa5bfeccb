package term

import (
	"bytes"
	"strings"
	"testing"
)

func TestCleanEscapesWhatDrivesATerminal(t *testing.T) {
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
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanText("a\nb\t\x1b"); got != "a\nb\t\\x1b" {
		t.Errorf("CleanText keeps newline and tab only: %q", got)
	}
}

func TestColorOnlyWhereWanted(t *testing.T) {
	var b bytes.Buffer
	if got := New(&b, "auto").Red("x"); got != "x" {
		t.Errorf("auto off a terminal: %q", got)
	}
	if got := New(&b, "always").Red("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("always: %q", got)
	}
}

func TestCutSaysWhatIsMissing(t *testing.T) {
	if got := Cut("héllo", 3); got != "hél… (5 characters)" {
		t.Errorf("%q", got)
	}
	if got := Cut("abc", 3); got != "abc" {
		t.Errorf("%q", got)
	}
}

// TestCleanStart: the beginning of a text is that of the whole text, whatever its size.
func TestCleanStart(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("é\x1b\xff", 10_000), strings.Repeat("\U0001f600", 5000), strings.Repeat("a", 9000)} {
		const n = 100
		got := CleanStart([]byte(text), n)
		want, _, _ := strings.Cut(Cut(Clean(text), n), "… (")
		if start, _, _ := strings.Cut(got, "… ("); start != want {
			t.Errorf("%q, want %q", start, want)
		}
	}
}
