// Package layout breaks the lines of .proto text, so that none is longer than 100 characters.
//
//	layout.Comment("  ", "Seen in 3 of 9.") // "  // Seen in 3 of 9.\n"
package layout

import "strings"

// width is the maximum length of a line in a .proto file, in characters.
const width = 100

// Comment returns text as the lines of a // comment with the given indentation. A word that is longer than a
// line is broken.
func Comment(indent, text string) string {
	var b strings.Builder
	start := indent + "// "
	line := []rune(start)
	used := false
	flush := func() {
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
		line, used = []rune(start), false
	}
	for word := range strings.FieldsSeq(text) {
		w := []rune(word)
		if used && len(line)+1+len(w) > width {
			flush()
		}
		if used {
			line = append(line, ' ')
		}
		for len(line)+len(w) > width {
			n := width - len(line)
			line = append(line, w[:n]...)
			w = w[n:]
			flush()
		}
		line, used = append(line, w...), true
	}
	if used {
		flush()
	}
	return b.String()
}

// Declaration joins the two parts of a declaration, such as the type and the name with its number, on
// one line if that is short enough, and otherwise on two lines.
func Declaration(indent, first, second string) string {
	if len(indent)+len(first)+1+len(second) <= width {
		return indent + first + " " + second + "\n"
	}
	return indent + first + "\n" + indent + "    " + second + "\n"
}
