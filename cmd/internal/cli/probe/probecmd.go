// Package probecmd has the command that asks a server for its fields.
//
// The flag --settle gives questions, and --names gives name candidates: from
// definitions, code, captures or lists of words. The work is done by
// replay/probe/oracle; replaytext prints.
package probecmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the command probe.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		probeCommand(a),
	}
}
