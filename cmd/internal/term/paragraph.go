package term

import (
	"fmt"
	"strings"
)

// minWidth is the least width to which lines are broken, in columns.
const minWidth = 20

// Paragraph appends to b a paragraph: indent, head and text, wrapped at spaces to the width of the
// terminal. Continuation lines are indented by two more spaces. A word is divided only if it is longer
// than a line.
func (o *Output) Paragraph(b *strings.Builder, indent, head, text string) {
	o.breakWords(b, indent, head, Clean(text))
}

// Sayf formats and prints text. On a terminal, lines that are too long are wrapped at spaces, and
// continuation lines are indented.
func (o *Output) Sayf(format string, args ...any) {
	fmt.Fprint(o, o.Wrap(fmt.Sprintf(format, args...)))
}

// Wrap wraps lines that are longer than the terminal is wide at spaces. If the output is not a terminal,
// it returns text unchanged.
func (o *Output) Wrap(text string) string {
	if !o.TTY || o.Width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if Cells(body) <= o.Width {
			b.WriteString(line)
			continue
		}
		indent := body[:len(body)-len(strings.TrimLeft(body, " "))]
		o.breakWords(&b, indent, "", body)
	}
	return b.String()
}

// breakWords appends to b a paragraph: indent, head and text, wrapped at spaces to the width of the terminal. The
// text must have no control characters.
func (o *Output) breakWords(b *strings.Builder, indent, head, text string) {
	width := max(o.Width, minWidth)
	if o.Width <= 0 {
		width = unlimited
	}
	head = indent + head
	hanging := indent + "  "
	at, begin := Cells(head), true
	b.WriteString(head)
	for word := range strings.FieldsSeq(text) {
		gap := 1
		if begin {
			gap = 0
		}
		if at+gap+Cells(word) > width && !begin {
			b.WriteString("\n" + hanging)
			at, gap = len(hanging), 0
		}

		// A word longer than a line is broken anywhere.
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
