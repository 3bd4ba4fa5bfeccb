package layout

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// No line is longer than the width, and no text is lost.
func TestComment(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"short", strings.Repeat("word ", 70), strings.Repeat("é", 333), "a " + strings.Repeat("x", 150) + " b", ""} {
		out := Comment("  ", text)
		var back strings.Builder
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > width || !strings.HasPrefix(line, "  // ") {
				t.Errorf("%q", line)
			}
			back.WriteString(strings.TrimPrefix(line, "  // "))
		}
		if strings.ReplaceAll(back.String(), " ", "") != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%q became %q", text, out)
		}
	}
}

// A declaration is broken only where it has to be.
func TestDeclaration(t *testing.T) {
	t.Parallel()
	if got := Declaration("  ", "string", "field_1 = 1;"); got != "  string field_1 = 1;\n" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("T", 95)
	if got := Declaration("  ", long, "field_1 = 1;"); got != "  "+long+"\n      field_1 = 1;\n" {
		t.Errorf("%q", got)
	}
}
