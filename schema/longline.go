package schema

import (
	"slices"
	"strings"
)

const (
	// longLine is the length in bytes beyond which a line is broken between any two tokens.
	longLine = 4096

	// foldAt is the length in bytes beyond which a long line is broken after a declaration.
	foldAt = 1024
)

// FoldLongLines breaks the long lines of a .proto file between tokens. The parser counts the column of each
// declaration from the beginning of its line, so a file that consists of one line would take quadratic time.
// original converts an offset in folded to the offset in text.
func FoldLongLines(text string) (folded string, original func(offset int) int) {
	if !hasLongLine(text) {
		return text, func(offset int) int { return offset }
	}
	var out strings.Builder

	// The offsets in out of the line breaks that were added.
	var breaks []int

	// done is the end of the text that was written, and line the beginning of the current line.
	done, line := 0, 0
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

// hasLongLine reports whether text has a line that is longer than longLine.
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

// tokenSize returns the size in bytes of the string or comment at the beginning of text, which must not be
// broken; 1 for anything else.
func tokenSize(text string) int {
	switch {
	case text[0] == '"' || text[0] == '\'':
		// A string ends at its quote, or at the line end if it is malformed.
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
