package term

import (
	"strings"
)

// minWidth is the narrowest terminal for which lines are broken.
const minWidth = 20

// Paragraph writes text after a head, broken at spaces where it is wider than the
// terminal; the lines after the first are indented by two more spaces. Only a word that
// is longer than a line is divided.
func (o *Output) Paragraph(b *strings.Builder, indent, head, text string) {
	width := max(o.Width, minWidth)
	if o.Width <= 0 {
		width = unlimited
	}
	head = indent + head
	hanging := indent + "  "
	at, begin := Cells(head), true
	b.WriteString(head)
	for word := range strings.FieldsSeq(Clean(text)) {
		gap := 1
		if begin {
			gap = 0
		}
		if n := Cells(word); at+gap+n > width && !begin {
			b.WriteString("\n" + hanging)
			at, gap = len(hanging), 0
		}
		for at+gap+Cells(word) > width { // longer than a line
			part := FirstCells(word, max(width-at-gap, 2))
			b.WriteString(part + "\n" + hanging)
			word, at, gap = word[len(part):], len(hanging), 0
		}
		b.WriteString(" "[:gap] + word)
		at += gap + Cells(word)
		begin = false
	}
	b.WriteByte('\n')
}
