// Package democmd has the demonstration: the main job on the built-in server.
//
// It starts the stand-in, runs the clients of package demo through a recorder, and
// prints a report: what was recorded, decoded, extracted, inferred (fields beside
// those of the definitions), checked and replayed. The hidden command of the
// connect-go client is here, too.
package democmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the command demo.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		demoCommand(a),
		demoClientCommand(a),
	}
}
