package schematext

import (
	"strconv"
	"strings"

	"unwire/cmd/internal/term"
	"unwire/schema/history"
)

// History prints a table of the changes between versions of a client.
func History(out *term.Output, changes []history.Change) error {
	rows := make([][]string, len(changes))
	for i, c := range changes {
		what := strings.TrimPrefix(c.Old+" -> "+c.New, " -> ")
		rows[i] = []string{
			c.FirstSeen, c.From, c.To, c.Method, c.Direction, c.Path, strings.ReplaceAll(string(c.Change), "_", " "),
			strings.TrimSuffix(what, " -> "), strconv.FormatFloat(c.P, 'f', 2, 64), strconv.FormatInt(c.Seen, 10) + "/" + strconv.FormatInt(c.Messages, 10),
		}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "FIRST SEEN"},
		{Name: "OLD VERSION", Shorten: term.Start, Min: 11, Drop: 2},
		{Name: "NEW VERSION", Shorten: term.Start, Min: 11},
		{Name: "METHOD", Shorten: term.Name, Min: 16},
		{Name: "SENT BY"},
		{Name: "FIELD"},
		{Name: "CHANGE"},
		{Name: "TYPE", Shorten: term.End, Min: 8},
		{Name: "PROBABILITY", Right: true, Drop: 3},
		{Name: "TIMES SEEN", Right: true, Drop: 1},
	}})
}
