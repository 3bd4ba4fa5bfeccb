// Package probecmd has the command that asks a server for its fields.
package probecmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		probeCommand(a),
	}
}
