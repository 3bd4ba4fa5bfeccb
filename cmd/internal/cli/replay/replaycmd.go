// Package replaycmd has the commands that send recorded requests again: replay and its
// subcommands, the credentials for it, and the built-in server.
//
// The flags of replay say what is edited (also in an editor, or by a patch), what is
// sent after which exchange, with which credentials and to which hosts. Other
// commands run a suite of experiments, verify definitions against a server, and start
// the stand-in, which is the built-in server. The work is done by replay and the
// packages below it; replaytext prints.
package replaycmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the commands that send recorded requests, the stand-in server, and credentials.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		replayCommand(a),
		credentialsCommand(a),
		standinCommand(a),
	}
}
