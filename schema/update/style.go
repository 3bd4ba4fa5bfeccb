package update

import "strings"

// A style is how the declarations of a block are set.
type style struct {
	nameColumn, equalsColumn int // 0 where they are not in a column
	left, right              string
}

// style looks at the declarations of fields or values in b.
func (b *block) style() style {
	s := style{left: " ", right: " "}
	names, equals, lefts := map[int]bool{}, map[int]bool{}, map[int]bool{}
	gaps := map[int]bool{}
	count := 0
	for _, dd := range b.decls {
		if dd.kind != fieldDecl && dd.kind != valueDecl || dd.equals.end == 0 {
			continue
		}
		line := strings.LastIndexByte(b.doc.text[:dd.start], '\n') + 1
		if _, alone := b.doc.indentAt(dd.start); !alone || strings.ContainsAny(b.doc.text[dd.start:dd.number.end], "\n\t") {
			continue
		}
		before := b.doc.text[dd.name.end:dd.equals.start]
		after := b.doc.text[dd.equals.end:dd.number.start]
		if strings.Trim(before, " ") != "" || strings.Trim(after, " ") != "" {
			continue // comments
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
	if count < 2 {
		if len(s.left) > 1 {
			s.left = " "
		}
		return s
	}
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

// aligned sets a field, or a value where typ is "", as the others of b are set.
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

// fill brings a text to a column, or adds gap where that is 0 or behind it.
func fill(text string, column int, gap string) string {
	if column > len(text) {
		return text + strings.Repeat(" ", column-len(text))
	}
	return text + gap
}
