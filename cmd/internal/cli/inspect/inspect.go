// Package inspect has the commands that read captures, frames and messages: ls, show,
// decode, encode, grep, extract, diff, export, redact and audit.
package inspect

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		lsCommand(a),
		showCommand(a),
		decodeCommand(a),
		encodeCommand(a),
		grepCommand(a),
		extractCommand(a),
		diffCommand(a),
		exportCommand(a),
		redactCommand(a),
		auditCommand(a),
	}
}
