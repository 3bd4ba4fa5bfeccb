// Package replaycmd has the commands that send recorded requests again: replay and its
// subcommands, the credentials for it, and the built-in server.
package replaycmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		replayCommand(a),
		credentialsCommand(a),
		standinCommand(a),
	}
}
