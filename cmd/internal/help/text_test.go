package help

import (
	"strings"
	"testing"
)

// A list in the prose keeps its two columns at every width: descriptions are folded within their column.
func TestProseKeepsColumns(t *testing.T) {
	t.Parallel()
	const prose = `The verdict is one of these:

  same       the live answer equals the captured one, except for ignored differences
  rejected   the server answered with an error; or the request was sent, but no
             answer came

  profile: none`
	for width, want := range map[int]string{
		100: `The verdict is one of these:

  same       the live answer equals the captured one, except for ignored differences
  rejected   the server answered with an error; or the request was sent, but no answer came

  profile: none`,
		50: `The verdict is one of these:

  same       the live answer equals the captured
             one, except for ignored differences
  rejected   the server answered with an error; or
             the request was sent, but no answer
             came

  profile: none`,
	} {
		if got := wrapProse(prose, width); got != want {
			t.Errorf("at %d columns:\n%s", width, got)
		}
	}
}

// The text of a page explains arguments before the examples, and the values of flags after the flags.
func TestTextExplainsPlaceholders(t *testing.T) {
	t.Parallel()
	p := &Page{
		Path: "unwire x", Usage: []string{"unwire x FILE [flags]"}, Examples: []string{"unwire x a"},
		Arguments: []row{{"FILE", "a file"}}, Values: []row{{"TIME", "a time"}},
		Flags: []section{{"Flags", []row{{"    --wait TIME", "wait this long"}}}},
	}
	var b strings.Builder
	if err := p.Text(&b, 80, Style{}); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, part := range []string{"\nArguments:\n  FILE  a file\n", "\nExamples:\n", "\nFlags:\n", "\nValues of flags:\n  TIME  a time\n"} {
		at := strings.Index(b.String(), part)
		if at <= last {
			t.Errorf("%q is at %d, after %d:\n%s", part, at, last, &b)
		}
		last = at
	}
}
