package schematext

import (
	"strings"
	"testing"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/schema/compare"
)

// TestChangesMarkdown: a section for each kind, and nothing in a name ends its code.
func TestChangesMarkdown(t *testing.T) {
	changes := []contract.SchemaChange{
		{Change: compare.Change{Change: compare.Added, Kind: compare.MethodElement, Element: "a.B.C", New: "rpc C(M) returns (M)"}},
		{Change: compare.Change{Change: compare.Removed, Kind: compare.FieldElement, Element: "a.M.x", Old: "`x`", Breaks: compare.BreaksWire}, Captures: []string{"f#1", "f#2", "f#3", "f#4"}},
		{Change: compare.Change{Change: "retyped", Kind: compare.FieldElement, Element: "a.M.y", Old: "int32", New: "int64", Note: "a note"}, Proto: contract.Outdated},
	}
	var b strings.Builder
	if err := ChangesMarkdown(&b, changes); err != nil {
		t.Fatal(err)
	}
	const want = "## Methods\n\n- added `a.B.C`: `rpc C(M) returns (M)`\n\n## Fields\n\n" +
		"- removed `a.M.x` (was `'x'`), **breaks the wire format**; in f#1 f#2 f#3 …\n" +
		"- retyped `a.M.y`: `int32` → `int64`; a note; the definitions of --proto are outdated\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	if s := ChangesSummary(changes); s != "3 changes: 1 incompatible in the wire format, 0 in JSON, 0 only in source code, 2 compatible" {
		t.Error(s)
	}
	if s := OutdatedSummary(changes); !strings.HasPrefix(s, "the definitions of --proto still describe the old version of 1 changed element;") {
		t.Error(s)
	}
}

// On a terminal of 80 columns, the table shows what each element became, and pipes get a column for each definition.
func TestChangesFitTheTerminal(t *testing.T) {
	changes := []contract.SchemaChange{
		{Change: compare.Change{Change: "added", Kind: compare.FieldElement, Element: "shop.v1.Item.colour_of_the_longest_name", New: "string = 7"}},
		{Change: compare.Change{Change: "renamed", Kind: compare.MessageElement, Element: "shop.v1.Order", Old: "shop.v1.Order", New: "shop.v1.Request", Breaks: compare.BreaksSource}},
		{Change: compare.Change{Change: "retyped", Kind: compare.FieldElement, Element: "shop.v1.Item.n", Old: "int32", New: "int64", Breaks: compare.BreaksJSON}},
	}
	for _, test := range []struct {
		tty  bool
		want []string
	}{
		{true, []string{"string = 7", "→ Request", "int32 → int64"}},
		{false, []string{"OLD\tNEW\tINCOMPATIBLE", "shop.v1.Order\tshop.v1.Order\tshop.v1.Request\tsource", "int32\tint64\tJSON"}},
	} {
		var b strings.Builder
		if err := Changes(&term.Output{Writer: &b, TTY: test.tty, Width: 80}, changes, ChangeColumns{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in:\n%s", want, b.String())
			}
		}
	}
}
