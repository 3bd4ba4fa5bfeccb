package schematext

import (
	"strings"
	"testing"

	"unwire/cmd/internal/contract"
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
	if s := ChangesSummary(changes); s != "3 changes (breaking the wire format: 1, JSON: 0, only source code: 0, nothing: 2)" {
		t.Error(s)
	}
	if s := OutdatedSummary(changes); !strings.HasPrefix(s, "the definitions of --proto still describe the old version of 1 changed element;") {
		t.Error(s)
	}
}
