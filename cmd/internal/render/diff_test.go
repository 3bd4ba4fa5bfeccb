package render

import (
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/diff"
	"unwire/schema"
)

// TestDifferences writes a changed text, an added value and an ignored one in each of
// the formats.
func TestDifferences(t *testing.T) {
	list := []query.Comparison{{Call: "a.B/C[0]", Changes: []diff.Change{
		{Path: "1", Op: diff.Modify, Old: "the quick brown fox", New: "the quick red fox", OldBytes: diff.Bytes{Data: []byte("\n\x01a")}, NewBytes: diff.Bytes{Off: 2, Data: []byte("\n\x01b")}},
		{Path: "2", Op: diff.Add, New: uint64(7)},
		{Path: "3", Op: diff.Modify, Old: "x", New: "y", Ignored: "volatile"},
		{Path: "4", To: "4[1]", Op: diff.Move, Old: 0, New: 1},
	}}}
	for _, c := range []struct {
		o    DiffOptions
		want string
	}{
		{DiffOptions{Context: 8}, `Call 1 of a.B/C:
~ field 1
    the quick [-brown-]{+red+} fox
+ field 2
    + 7
> field 4 (moved to field 4[1])
    moved from 0 to 1
`},
		{DiffOptions{Format: "side", Context: 8}, `Call 1 of a.B/C:
~ field 1
  the quick [-brown-] fox                                  | the quick {+red+} fox
+ field 2
                                                           | 7
> field 4 (moved to field 4[1])
  at 0                                                     | at 1
`},
		{DiffOptions{Format: "tsv", All: true}, "PLACE\tDIFFERENCE\tIN A\tIN B\tIGNORED\tNAME\n" +
			"a.B/C[0] field 1\tchanged\tthe quick brown fox\tthe quick red fox\t\t\n" +
			"a.B/C[0] field 2\tonly in B\t\t7\t\t\n" +
			"a.B/C[0] field 3\tchanged\tx\ty\tvolatile\t\n" +
			"a.B/C[0] field 4\tmoved\t0\t1\t\t\n"},
	} {
		var b strings.Builder
		if err := Differences(&term.Output{Writer: &b}, list, c.o); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.o, b.String(), c.want)
		}
	}
	if got := DifferenceCount(list); got != "3 differences, 1 ignored (--show-ignored lists them)" {
		t.Errorf("%q", got)
	}
	times := []query.Comparison{{Changes: []diff.Change{{Path: "5", Op: diff.Modify, Ignored: "volatile timestamp"}}}}
	if got := DifferenceCount(times); got != "0 differences, 1 ignored (--show-ignored lists them; 1 of them is a time, which --volatile does not ignore)" {
		t.Errorf("%q", got)
	}

	var b strings.Builder
	if err := Differences(&term.Output{Writer: &b}, list, DiffOptions{Context: 8, Hex: true}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"    - 000000  0a 01 61 ", "    + 000002  0a 01 62 "} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
}

// TestElide: of a long text that is common, the words around a change remain.
func TestElide(t *testing.T) {
	const text = "one two three four five six seven eight nine ten"
	for _, c := range []struct {
		after, before bool
		want          string
	}{
		{true, true, "one two … nine ten"},
		{true, false, "one two …"},
		{false, true, "… nine ten"},
	} {
		if got := elide(text, 2, c.after, c.before); got != c.want {
			t.Errorf("after %v, before %v: %q, want %q", c.after, c.before, got, c.want)
		}
	}
}

// TestMessagesWithoutCounterpartHaveNames: the fields of a frame that only one side has are named, on one
// line and on several.
func TestMessagesWithoutCounterpartHaveNames(t *testing.T) {
	defs, err := schema.Load(t.Context(), fstest.MapFS{"a.proto": {Data: []byte(`syntax = "proto3";
package a;
message Item { string title = 1; Kind kind = 2; Item more = 3; }
enum Kind { NONE = 0; BOOK = 1; }`)}})
	if err != nil {
		t.Fatal(err)
	}
	def := definition{message: defs.Message("a.Item")}
	fields := []diff.Field{{Number: 1, Value: "tea"}, {Number: 2, Value: uint64(1)}, {Number: 3, Fields: []diff.Field{{Number: 1, Value: "pot"}}}, {Number: 9, Value: uint64(5)}}
	if got, want := valueLines(fields, def, mostValue), `{title: "tea", kind: 1 (BOOK), more: {title: "pot"}, 9: 5}`; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	fields[0].Value = strings.Repeat("tea ", 24)
	want := "1 title: " + strconv.Quote(strings.Repeat("tea ", 24)) + "\n2 kind: 1 (BOOK)\n3 more:\n  1 title: \"pot\"\n9: 5"
	if got := strings.Join(valueLines(fields, def, mostValue), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestPlaceText(t *testing.T) {
	for path, want := range map[string]string{
		"@up/0": "client frame 0", "@down/3 1.2": "server frame 3, field 1.2", "@down 1[0]": "several server frames, field 1[0]",
		"@up/0 room": "client frame 0, room", "1.2": "field 1.2", "status": "status", "": "",
	} {
		if got := Place(path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}
