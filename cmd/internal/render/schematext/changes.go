package schematext

import (
	"fmt"
	"io"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/schema/compare"
)

// ChangeColumns select optional columns of a changelog.
type ChangeColumns struct {
	// Captures adds the exchanges that contain the changed element.
	Captures bool

	// Replays adds the experiments that use the changed element.
	Replays bool

	// Proto adds whether the user's .proto files still agree with the old version.
	Proto bool
}

// Changes prints a table of changes between two versions of definitions.
func Changes(out *term.Output, changes []contract.SchemaChange, columns ChangeColumns) error {
	table := term.Table{Rows: make([][]string, len(changes)), Columns: []term.Column{
		{Name: "CHANGE"},
		{Name: "KIND", Drop: 3},
		{Name: "ELEMENT", Shorten: term.Name, Min: 20},
		{Name: "OLD", On: term.Plain},
		{Name: "NEW", On: term.Plain},
		// One column for both needs less width, so that no terminal hides what an element became.
		{Name: "OLD → NEW", Shorten: term.Middle, Min: 24, On: term.Drawn},
		{Name: "INCOMPATIBLE"},
		{Name: "NOTE", Shorten: term.End, Min: 16, Drop: 4},
	}}
	// The optional columns are appended in the same order to the header and to each row.
	if columns.Captures {
		table.Columns = append(table.Columns, term.Column{Name: "IN EXCHANGES", Shorten: term.Middle, Min: 12, Drop: 2})
	}
	if columns.Replays {
		table.Columns = append(table.Columns, term.Column{Name: "IN EXPERIMENTS", Shorten: term.Middle, Min: 12, Drop: 2})
	}
	if columns.Proto {
		table.Columns = append(table.Columns, term.Column{Name: "YOUR DEFINITIONS", Drop: 2})
	}
	for i, c := range changes {
		if c.Breaks != compare.BreaksNothing {
			table.Legend = changesLegend
		}
		row := []string{string(c.Change.Change), string(c.Kind), c.Element, c.Old, c.New, withoutPackages(transition(&c)), incompatible(c.Breaks), c.Note}
		if columns.Captures {
			row = append(row, firstFrames(c.Captures))
		}
		if columns.Replays {
			row = append(row, firstFrames(c.Replays))
		}
		if columns.Proto {
			row = append(row, c.Proto)
		}
		table.Rows[i] = row
	}
	return out.Table(table)
}

// changesLegend explains the column INCOMPATIBLE.
const changesLegend = "(INCOMPATIBLE: where programs with the old and the new version conflict)"

// incompatible returns the cell of the column INCOMPATIBLE.
func incompatible(b compare.Break) string {
	switch b {
	case compare.BreaksWire:
		return "wire format"
	case compare.BreaksSource:
		return "source code"
	case compare.BreaksNothing:
		return ""
	}
	return breaksWords(b)
}

// transition returns the old and the new definition of an element as one text, without the old one if it
// only repeats the name of the element.
func transition(c *contract.SchemaChange) string {
	switch {
	case c.New == "":
		return c.Old
	case c.Old == "":
		return c.New
	case c.Old == c.Element:
		return "→ " + c.New
	}
	return c.Old + " → " + c.New
}

// ChangesMarkdown writes a changelog as Markdown, with a section for each kind of element.
func ChangesMarkdown(w io.Writer, changes []contract.SchemaChange) error {
	titles := map[compare.ElementKind]string{
		compare.MethodElement: "Methods", compare.ServiceElement: "Services", compare.MessageElement: "Messages", compare.EnumElement: "Enums",
		compare.OneofElement: "Oneofs", compare.FieldElement: "Fields", compare.ValueElement: "Enum values",
	}
	var b strings.Builder
	if len(changes) == 0 {
		b.WriteString("No changes.\n")
	}
	last := compare.ElementKind("")
	for i := range changes {
		c := &changes[i]
		if c.Kind != last {
			if last != "" {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "## %s\n\n", titles[c.Kind])
			last = c.Kind
		}
		b.WriteString(markdownItem(c))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownItem formats one change as an item of a Markdown list.
func markdownItem(c *contract.SchemaChange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s %s", c.Change.Change, markdownCode(c.Element))
	switch {
	case c.Change.Change == compare.Added:
		b.WriteString(": " + markdownCode(c.New))
	case c.Change.Change == compare.Removed:
		b.WriteString(" (was " + markdownCode(c.Old) + ")")
	default:
		b.WriteString(": " + markdownCode(c.Old) + " → " + markdownCode(c.New))
	}
	// The optional parts, in the order of a sentence.
	if c.Breaks != "" {
		fmt.Fprintf(&b, ", **breaks %s**", breaksWords(c.Breaks))
	}
	if c.Note != "" {
		b.WriteString("; " + term.Clean(c.Note))
	}
	if len(c.Captures) > 0 {
		b.WriteString("; in " + firstFrames(c.Captures))
	}
	if len(c.Replays) > 0 {
		b.WriteString("; affects " + firstFrames(c.Replays))
	}
	if c.Proto != "" {
		b.WriteString("; the definitions of --proto are " + c.Proto)
	}
	b.WriteString("\n")
	return b.String()
}

// markdownCode formats s as inline code in Markdown. Backquotes in s become apostrophes.
func markdownCode(s string) string { return "`" + strings.ReplaceAll(term.Clean(s), "`", "'") + "`" }

// breaksWords says what a change breaks, in words.
func breaksWords(b compare.Break) string {
	if b == compare.BreaksWire {
		return "the wire format"
	}
	if b == compare.BreaksJSON {
		return "JSON"
	}
	if b == compare.BreaksSource {
		return "source code"
	}
	return string(b)
}

// ChangesSummary returns one line with the number of changes that break the wire format, JSON, source
// code or nothing.
func ChangesSummary(changes []contract.SchemaChange) string {
	if len(changes) == 0 {
		return "no changes"
	}
	breaks := map[compare.Break]int{}
	for _, c := range changes {
		breaks[c.Breaks]++
	}
	return fmt.Sprintf("%s: %d incompatible in the wire format, %d in JSON, %d only in source code, %d compatible", app.Counted(len(changes), "change"),
		breaks[compare.BreaksWire], breaks[compare.BreaksJSON], breaks[compare.BreaksSource], breaks[compare.BreaksNothing])
}

// OutdatedSummary returns one line with the number of changes for which the user's definitions still have
// the old state.
func OutdatedSummary(changes []contract.SchemaChange) string {
	n := 0
	for i := range changes {
		if changes[i].Proto == contract.Outdated {
			n++
		}
	}
	if n == 0 {
		return "the definitions of --proto need no update for these changes"
	}
	return fmt.Sprintf("the definitions of --proto still describe the old version of %s; 'unwire schema update' updates the definitions", app.Counted(n, "changed element"))
}
