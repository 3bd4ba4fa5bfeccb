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

// A long comment of an example becomes several comments, because a backslash does not continue a comment in a shell. A
// long command is continued after a backslash, which does not separate a flag from its value.
func TestTextWrapsExamples(t *testing.T) {
	t.Parallel()
	p := &Page{Path: "unwire x", Examples: []string{
		"# Send the message in a file, and print all answers",
		"unwire x --data @request.json --to http://127.0.0.1:8080 --json > answers-of-the-server.json",
		"# Send nothing", "unwire x",
	}}
	const want = `Examples:
  # Send the message in a file, and
  # print all answers
  unwire x --data @request.json \
      --to http://127.0.0.1:8080 \
      --json \
      > answers-of-the-server.json
  # Send nothing
  unwire x
`
	var b strings.Builder
	if err := p.Text(&b, 40, Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", &b, want)
	}
}
