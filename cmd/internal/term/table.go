package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A Table is a list of rows under a header. On a terminal it is drawn to fit the width: one line for each
// row, the least important columns dropped, long cells shortened. Otherwise it is printed as
// tab-separated values, complete.
type Table struct {
	// Columns are the columns in order.
	Columns []Column

	// Rows are the rows, each with one cell for each column.
	Rows [][]string

	// Detail, if set, reports whether a row is printed again in full below the table if some of its cells
	// were shortened or dropped, for example a failure with its reason.
	Detail func(row int) bool

	// Indent is written before each line of a drawn table.
	Indent string

	// Legend explains short forms in the cells. It is printed below a drawn table; "" prints nothing.
	Legend string

	// NoHeader draws the table without its header line.
	NoHeader bool
}

// A Column describes one column of a table, and how it may be shortened on a narrow terminal.
type Column struct {
	// Name is the column's heading.
	Name string

	// Drop is the order in which columns are dropped if the table is too wide: the highest number first.
	// Default: 0, never.
	Drop int

	// Shorten selects how a cell is cut if it is too wide. Default: cells are not cut.
	Shorten Shortening

	// Min is the width in cells to which the column may be shortened before other columns are dropped.
	// Default: the width of the header.
	Min int

	// Right aligns the cells to the right, as for numbers.
	Right bool

	// On limits the column to terminals or to other outputs. Default: both.
	On Medium

	// Paint, if set, colours a cell of a drawn table. text is the complete cell, and shown the text after
	// shortening.
	Paint func(text, shown string) string
}

// A Medium is a kind of output in which a column is shown, such as a terminal or a pipe.
type Medium int

const (
	everywhere Medium = iota
	Drawn             // on terminals only
	Plain             // in tab-separated tables only
)

// columnGap is the number of spaces between two columns.
const columnGap = 2

// Table prints a table. Control characters in cells are escaped.
func (o *Output) Table(t Table) error {
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("draw table: row %d has %d cells for %d columns", i, len(row), len(t.Columns))
		}
	}
	if !o.TTY {
		return o.writeTSV(t.on(Plain))
	}
	return o.draw(t.on(Drawn))
}

// on returns a copy of the table that has only the columns for a medium, with control characters in cells
// escaped.
func (t Table) on(m Medium) Table {
	var keep []int
	for i, c := range t.Columns {
		if c.On == everywhere || c.On == m {
			keep = append(keep, i)
		}
	}
	out := t
	out.Columns = pick(t.Columns, keep)
	out.Rows = make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		out.Rows[i] = pick(row, keep)
		for j, cell := range out.Rows[i] {
			out.Rows[i][j] = Clean(cell)
		}
	}
	return out
}

// pick returns the elements of a list at the indices in keep.
func pick[T any](list []T, keep []int) []T {
	out := make([]T, len(keep))
	for i, k := range keep {
		out[i] = list[k]
	}
	return out
}

// writeTSV prints a table as tab-separated values with a header line.
func (o *Output) writeTSV(t Table) error {
	var b strings.Builder
	for i, c := range t.Columns {
		if i > 0 {
			b.WriteByte('\t')
		}
		b.WriteString(c.Name)
	}
	b.WriteByte('\n')
	for _, row := range t.Rows {
		b.WriteString(strings.Join(row, "\t"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(o, b.String())
	return err
}

// draw prints a table that fits the width of the terminal.
func (o *Output) draw(t Table) error {
	width := o.Width - Cells(t.Indent)
	if o.Width <= 0 {
		width = unlimited
	}
	l := fit(t, width)

	// Shorten the cells to the widths that fit chose, then colour them, because colours have no
	// width.
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = make([]string, len(l.columns))
		for k, j := range l.columns {
			shown := t.Columns[j].Shorten.apply(row[j], l.widths[k])
			if paint := t.Columns[j].Paint; paint != nil {
				shown = paint(row[j], shown)
			}
			rows[i][k] = shown
		}
	}
	lines, err := o.layOut(t, l, rows)
	if err != nil {
		return fmt.Errorf("draw table: %w", err)
	}

	var b strings.Builder
	for _, line := range lines {
		b.WriteString(t.Indent + line + "\n")
	}
	// Details, the names of dropped columns and the legend follow the table.
	o.writeDetails(&b, t, l)
	if len(l.dropped) > 0 {
		note := hiddenNote(l.dropped)
		b.WriteString(t.Indent + o.Dim(End.apply(note, width)) + "\n")
	}
	if t.Legend != "" && len(t.Rows) > 0 {
		b.WriteString(o.Dim(strings.TrimSuffix(o.Wrap(t.Indent+t.Legend+"\n"), "\n")) + "\n")
	}
	_, err = io.WriteString(o, b.String())
	return err
}

// layOut returns the lines of a table with aligned cells. rows are the cells of the drawn columns,
// already shortened.
func (o *Output) layOut(t Table, l layout, rows [][]string) ([]string, error) {
	align := make([]tw.Align, len(l.columns))
	header := make([]any, len(l.columns))
	for k, j := range l.columns {
		align[k] = tw.AlignLeft
		if t.Columns[j].Right {
			align[k] = tw.AlignRight
		}
		header[k] = End.apply(t.Columns[j].Name, l.widths[k])
	}

	// tablewriter computes the layout; its borders and wrapping are off.
	var b strings.Builder
	w := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off},
			},
		})),
		tablewriter.WithEastAsian(tw.Off), // as Cells has it
		tablewriter.WithPadding(tw.Padding{Right: strings.Repeat(" ", columnGap), Overwrite: true}),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
	)
	if !t.NoHeader {
		w.Header(header...)
	}
	if err := w.Bulk(rows); err != nil {
		return nil, err
	}
	if err := w.Render(); err != nil {
		return nil, err
	}

	// Trailing padding would wrap on a terminal that is as wide as the table.
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	if !t.NoHeader && len(lines) > 0 {
		lines[0] = o.Bold(lines[0])
	}
	return lines, nil
}

// writeDetails appends to b, for each row that asks for it (Table.Detail) and has shortened or dropped
// cells, a paragraph with those cells in full.
func (o *Output) writeDetails(b *strings.Builder, t Table, l layout) {
	if t.Detail == nil {
		return
	}
	width := max(o.Width-Cells(t.Indent), 1)
	for i, row := range t.Rows {
		if !t.Detail(i) {
			continue
		}
		title := Middle.apply(row[0], width)
		var cut []int
		for j, cell := range row {
			at := slices.Index(l.columns, j)
			whole := cell == "" || at >= 0 && t.Columns[j].Shorten.apply(cell, l.widths[at]) == cell
			if !whole && (j > 0 || title != cell) {
				cut = append(cut, j)
			}
		}
		if len(cut) == 0 {
			continue
		}
		b.WriteString("\n" + t.Indent + o.Bold(title) + "\n")
		for _, j := range cut {
			o.Paragraph(b, t.Indent+"  ", o.Dim(t.Columns[j].Name+": "), row[j])
		}
	}
}

// hiddenNote returns the line that names the columns that the terminal is too narrow for.
func hiddenNote(names []string) string {
	what, list := "columns", make([]string, len(names))
	for i, name := range names {
		if list[i] = name; strings.Contains(name, " ") {
			list[i] = `"` + name + `"`
		}
	}
	if len(names) == 1 {
		what = "column"
	}
	return fmt.Sprintf("(%s hidden at this width: %s)", what, strings.Join(list, ", "))
}
