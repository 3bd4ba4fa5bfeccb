package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cellGap is how many columns the drawing puts around a cell.
const cellGap = 2

// Wide is Table for rows that may be wider than a terminal: where they are, each
// is a paragraph, with a line for each cell that is not empty.
func (o *Output) Wide(header []string, rows [][]string) error {
	if !o.TTY || o.Width <= 0 || tableWidth(header, rows) <= o.Width {
		return o.Table(header, rows)
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, cell := range row {
			if cell == "" {
				continue
			}
			o.paragraph(&b, header[j]+": ", Clean(cell), j == 0)
		}
	}
	_, err := fmt.Fprint(o, b.String())
	return err
}

func tableWidth(header []string, rows [][]string) (width int) {
	for j := range header {
		most := utf8.RuneCountInString(header[j])
		for _, row := range rows {
			most = max(most, utf8.RuneCountInString(Clean(row[j])))
		}
		width += most + cellGap
	}
	return width
}

// minWidth is the narrowest terminal for which lines are broken.
const minWidth = 20

// paragraph writes a cell within the width: at words where it can, the lines
// after the first indented.
func (o *Output) paragraph(b *strings.Builder, name, text string, first bool) {
	indent := "    "
	if first {
		indent = "  "
	} else {
		name = "  " + name
	}
	width, at := max(o.Width, minWidth), utf8.RuneCountInString(name)
	b.WriteString(o.Dim(name))
	begin := true
	for word := range strings.FieldsSeq(text) {
		for {
			n := utf8.RuneCountInString(word)
			gap := 1
			if begin {
				gap = 0
			}
			if at+gap+n <= width {
				b.WriteString(" "[:gap] + word)
				at += gap + n
				break
			}
			if !begin {
				b.WriteString("\n" + indent)
				at, begin = len(indent), true
				continue
			}
			runes := []rune(word) // longer than a line
			fit := max(width-at, 1)
			b.WriteString(string(runes[:fit]) + "\n" + indent)
			word, at = string(runes[fit:]), len(indent)
		}
		begin = false
	}
	b.WriteByte('\n')
}
