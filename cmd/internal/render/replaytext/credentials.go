package replaytext

import (
	"strings"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Credentials writes a table of where secrets are found.
func Credentials(out *term.Output, lines []contract.Credential) error {
	rows := make([][]string, len(lines))
	for i, l := range lines {
		state := l.State
		if l.Error != "" {
			state += ": " + l.Error
		}
		hosts := "loopback, " + strings.Join(l.Hosts, ", ")
		if len(l.Hosts) == 0 {
			hosts = "loopback, and --allow-host with --live"
		}
		rows[i] = []string{l.Reference, l.What, term.Clean(state), term.Clean(l.From), l.Expires, term.Clean(strings.Join(l.Audience, ", ")), hosts}
	}
	return out.Wide([]string{"REFERENCE", "WHAT", "STATE", "FROM", "EXPIRES", "AUDIENCE", "MAY GO TO"}, rows)
}
