package render

import (
	"fmt"
	"io"
	"strconv"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// MatchLegend explains the lines of Match, for people.
const MatchLegend = "Each match has two lines. The first has the address of the message, and the path, name and type of the field. The second has the match with its surroundings."

// Match prints a match of a search: the address, the field's path and kind, and the matched text with its
// surroundings. On a terminal, the text is on a line of its own.
func Match(out *term.Output, w io.Writer, m *contract.Match) error {
	place := m.Address
	if m.Frame == nil && m.Dir != "" {
		place += "/" + m.Dir
	}
	if n := len(m.Frames); n > 1 {
		place += "…" + strconv.Itoa(m.Frames[n-1])
	}
	path := term.Clean(m.Path)
	if path == "" {
		path = "-"
	}
	match := term.Clean(m.Before) + out.Red(term.Clean(m.Match)) + term.Clean(m.After)
	if !out.TTY {
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", place, path, m.Kind, match)
		return err
	}
	if name := term.Clean(m.Name); name != "" {
		if out.Width > 0 {
			// Wrapped lines are indented by two columns.
			name = term.Shorten(name, out.Width-2, term.Middle)
		}
		path += " " + name
	}
	_, err := fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s  %s  %s\n    %s\n", place, path, out.Dim(m.Kind), match)))
	return err
}
