package schematext

import (
	"fmt"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/schema/history"
)

// History prints a table of the changes between versions of a client.
func History(out *term.Output, changes []history.Change) error {
	rows := make([][]string, len(changes))
	for i, c := range changes {
		what := strings.TrimPrefix(c.Old+" -> "+c.New, " -> ")
		rows[i] = []string{
			c.FirstSeen, c.From, c.To, c.Method, historySender(c.Direction), c.Path, strings.ReplaceAll(string(c.Change), "_", " "),
			strings.TrimSuffix(what, " -> "), strconv.FormatFloat(c.P, 'f', 2, 64), seenIn(&c),
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
		{Name: "SEEN IN", Right: true, Drop: 1},
	}})
}

// historySender returns who sends the messages of a direction; "" for a change of a method.
func historySender(direction string) string {
	if direction == "" {
		return ""
	}
	return render.Sender(direction)
}

// seenIn formats in how many messages of the new version a field occurred. If it occurred in none, the number of
// messages of the old version with the field follows.
func seenIn(c *history.Change) string {
	of := app.Counted(c.Messages, "message")
	if c.Change == "not_seen" {
		return fmt.Sprintf("0 of %s (old version: %d)", of, c.Seen)
	}
	return fmt.Sprintf("%d of %s", c.Seen, of)
}
