package term

import (
	"github.com/clipperhouse/displaywidth"
)

// Cells returns the width of text in terminal columns, ignoring escape sequences for colours. Wide
// characters (CJK, emoji) count two, combining ones none.
func Cells(s string) int {
	n, escaped := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r < '@' || r == '['
		default:
			n += displaywidth.Rune(r)
		}
	}
	return n
}

// FirstCells returns as much of the beginning of s as fits into width cells. Characters that consist of
// several code points are not divided.
func FirstCells(s string, width int) string {
	end, n := 0, 0
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		if n += Cells(g.Value()); n > width {
			break
		}
		end += len(g.Value())
	}
	return s[:end]
}

// lastCells returns as much of the end of s as fits into width cells.
func lastCells(s string, width int) string {
	excess := Cells(s) - width
	for g := displaywidth.StringGraphemes(s); excess > 0 && g.Next(); {
		excess -= Cells(g.Value())
		s = s[len(g.Value()):]
	}
	return s
}
