package schema

import (
	"slices"
	"strings"
)

const (
	// bytes, from which on a line is broken between any two tokens
	longLine = 4096

	// bytes of a long line from which on it is broken after a declaration
	foldAt = 1024
)

// Fold breaks the long lines of a .proto file between tokens. The parser counts the
// columns of every declaration from the beginning of its line, so that a file of one
// line, as programs write it, would take quadratic time. Original returns where a byte of
// the folded text is in the text as it was.
func Fold(text string) (folded string, original func(offset int) int) {
	if !hasLongLine(text) {
		return text, func(offset int) int { return offset }
	}
	var out strings.Builder
	var breaks []int   // offsets of the line breaks that were added
	done, line := 0, 0 // what was written, and where the line began
	for i := 0; i < len(text); {
		c := text[i]
		i += tokenSize(text[i:])
		switch {
		case c == '\n':
			line = i
		case i-line > foldAt && strings.IndexByte(";{}", c) >= 0, i-line > longLine && strings.IndexByte(" \t,[]", c) >= 0:
			out.WriteString(text[done:i])
			breaks = append(breaks, out.Len())
			out.WriteByte('\n')
			done, line = i, i
		}
	}
	out.WriteString(text[done:])
	return out.String(), func(offset int) int {
		n, _ := slices.BinarySearch(breaks, offset)
		return offset - n
	}
}

func hasLongLine(text string) bool {
	for len(text) > longLine {
		i := strings.LastIndexByte(text[:longLine], '\n')
		if i < 0 {
			return true
		}
		text = text[i+1:]
	}
	return false
}

// tokenSize is the size of the string or the comment that text begins with, else 1.
func tokenSize(text string) int {
	switch {
	case text[0] == '"' || text[0] == '\'':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case text[0]:
				return i + 1
			case '\n':
				return i
			}
		}
		return len(text)
	case strings.HasPrefix(text, "//"):
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			return i
		}
		return len(text)
	case strings.HasPrefix(text, "/*"):
		if i := strings.Index(text[2:], "*/"); i >= 0 {
			return 2 + i + 2
		}
		return len(text)
	}
	return 1
}
