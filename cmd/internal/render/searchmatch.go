package render

import (
	"fmt"
	"io"
	"strconv"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// MatchLegend explains the lines of Match, for people.
const MatchLegend = "Each line is a match: address of the message, path, name and type of the field, and the match with its surroundings."

// Match prints a match of a search as a line: the address, the field's path and kind, and the matched
// text with its surroundings.
func Match(out *term.Output, w io.Writer, m *contract.Match) error {
	place := m.Address
	if m.Frame == nil && m.Dir != "" {
		place += "/" + m.Dir
	}
	if n := len(m.Frames); n > 1 {
		place += "…" + strconv.Itoa(m.Frames[n-1])
	}
	sep := "\t"
	if out.TTY {
		sep = "  "
	}
	path := term.Clean(m.Path)
	switch {
	case path == "":
		path = "-"
	case out.TTY && m.Name != "":
		path += " " + term.Clean(m.Name)
	}
	_, err := fmt.Fprintf(w, "%s%s%s%s%s%s%s%s%s\n", place, sep, path, sep, m.Kind, sep,
		term.Clean(m.Before), out.Red(term.Clean(m.Match)), term.Clean(m.After))
	return err
}
