// Package schemacmd has the commands about definitions: schema and its subcommands,
// align and drift.
package schemacmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		schemaCommand(a),
		alignCommand(a),
		driftCommand(a),
	}
}
