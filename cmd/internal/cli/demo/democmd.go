// Package democmd has the demonstration: the main job on the built-in server.
package democmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		demoCommand(a),
		demoClientCommand(a),
	}
}
