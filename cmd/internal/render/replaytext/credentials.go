package replaytext

import (
	"strings"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Credentials prints a table of secrets: where each was found and when it expires.
func Credentials(out *term.Output, lines []contract.Credential) error {
	rows := make([][]string, len(lines))
	for i, l := range lines {
		state := l.State
		if l.Error != "" {
			state += ": " + l.Error
		}
		hosts := "this machine, " + strings.Join(l.Hosts, ", ")
		if len(l.Hosts) == 0 {
			hosts = "this machine, and hosts of --allow-host with --live"
		}
		rows[i] = []string{l.Reference, l.What, term.Clean(state), term.Clean(l.From), l.Expires, term.Clean(strings.Join(l.Audience, ", ")), hosts}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "REFERENCE", Shorten: term.Middle, Min: 20},
		{Name: "KIND OF SECRET", Drop: 4},
		{Name: "SECRET IS", Shorten: term.End, Min: 20},
		{Name: "FOUND IN", Shorten: term.Middle, Min: 16, Drop: 3},
		{Name: "EXPIRES", Drop: 2},
		{Name: "AUDIENCE", Shorten: term.Middle, Min: 16, Drop: 5},
		{Name: "SENT ONLY TO", Shorten: term.End, Min: 24, Drop: 1},
	}, Detail: func(i int) bool { return lines[i].Error != "" }})
}
