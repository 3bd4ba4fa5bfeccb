package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
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

func TestTableIsTSVOffATerminal(t *testing.T) {
	var b bytes.Buffer
	err := New(&b, "auto").Table([]string{"ID", "URL"}, [][]string{{"1", "a\tb"}, {"2", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "ID\tURL\n1\ta\\tb\n2\tc\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
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

func TestTableOnATerminalHasNoTabs(t *testing.T) {
	var b bytes.Buffer
	o := &Output{Writer: &b, TTY: true, Width: 80}
	if err := o.Table([]string{"ID", "URL"}, [][]string{{"1", "x"}}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte("\t")) || !bytes.Contains(b.Bytes(), []byte("ID")) {
		t.Errorf("drawn table: %q", b.String())
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

func TestWideRowsAreParagraphsWhereTheyDoNotFit(t *testing.T) {
	header := []string{"PATH", "VERDICT", "WHY"}
	rows := [][]string{{"1.2", "confirmed", "the server reads it as a message"}, {"a.very.long.path.that.no.line.of.this.terminal.has.room.for", "", "ü"}}
	for _, width := range []int{20, 30, 40, 60} {
		var b bytes.Buffer
		o := &Output{Writer: &b, TTY: true, Width: width}
		if err := o.Wide(header, rows); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
		words := strings.Join(strings.Fields(b.String()), "")
		if want := "PATH:1.2VERDICT:confirmedWHY:theserverreadsitasamessagePATH:" + rows[1][0] + "WHY:ü"; words != want {
			t.Errorf("%d columns: %q", width, b.String())
		}
	}
	var wide, plain bytes.Buffer
	for o, draw := range map[*Output]func(*Output) error{
		{Writer: &wide, TTY: true, Width: 200}:  func(o *Output) error { return o.Wide(header, rows) },
		{Writer: &plain, TTY: true, Width: 200}: func(o *Output) error { return o.Table(header, rows) },
	} {
		if err := draw(o); err != nil {
			t.Fatal(err)
		}
	}
	if wide.String() != plain.String() {
		t.Errorf("a table that fits is\n%s\nnot\n%s", &wide, &plain)
	}
}
