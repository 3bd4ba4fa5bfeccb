package update

import "strings"

// A style is how the fields or values in a block are aligned.
type style struct {
	// nameColumn and equalsColumn are the columns (in bytes, from 0) of names and equals signs, or 0 if they
	// are not aligned.
	nameColumn, equalsColumn int
	// left and right are the spaces before and after the equals sign of a declaration.
	left, right string
}

// style finds out how the fields or values in b are aligned.
func (b *block) style() style {
	s := style{left: " ", right: " "}

	// The columns of names and of equals signs, and the widths of the blanks before these.
	names, equals, lefts := map[int]bool{}, map[int]bool{}, map[int]bool{}
	gaps := map[int]bool{}
	count := 0

	for _, dd := range b.decls {
		if dd.kind != fieldDecl && dd.kind != valueDecl || dd.equals.end == 0 {
			continue
		}
		line := strings.LastIndexByte(b.doc.text[:dd.start], '\n') + 1
		// Only declarations on a single line show the alignment.
		if _, alone := b.doc.indentAt(dd.start); !alone || strings.ContainsAny(b.doc.text[dd.start:dd.number.end], "\n\t") {
			continue
		}
		before := b.doc.text[dd.name.end:dd.equals.start]
		after := b.doc.text[dd.equals.end:dd.number.start]
		if strings.Trim(before, " ") != "" || strings.Trim(after, " ") != "" {
			// A comment is between the parts.
			continue
		}
		count++
		names[dd.name.start-line] = true
		equals[dd.equals.start-line] = true
		lefts[len(before)] = true
		if dd.typ.end > 0 {
			gaps[dd.name.start-dd.typ.end] = true
		}
		s.left, s.right = before, after
	}

	// One line does not show an alignment.
	if count < 2 {
		if len(s.left) > 1 {
			s.left = " "
		}
		return s
	}

	// A column is deliberate if the text before it has different widths.
	for column := range names {
		if len(names) == 1 && len(gaps) > 1 {
			s.nameColumn = column
		}
	}
	for column := range equals {
		if len(equals) == 1 && len(lefts) > 1 {
			s.equalsColumn = column
		}
	}
	if len(lefts) > 1 || len(s.left) > 1 {
		s.left = " "
	}
	return s
}

// aligned returns the declaration of a field, in the style of b and indented by pad. For an enum value, typ is
// "".
func (b *block) aligned(pad, typ, name, number, options string) string {
	s := b.style()
	text := pad
	if typ != "" {
		text = fill(pad+typ, s.nameColumn, " ")
	}
	text = fill(text+name, s.equalsColumn, s.left) + "=" + s.right + number
	if options != "" {
		text += " [" + options + "]"
	}
	return text + ";"
}

// fill pads text with spaces to a column. If the column is 0 or too small, it appends gap instead.
func fill(text string, column int, gap string) string {
	if column > len(text) {
		return text + strings.Repeat(" ", column-len(text))
	}
	return text + gap
}
