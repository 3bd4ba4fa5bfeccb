// Package record has the commands that make captures: capture, import, and what they
// need of the machine (ca, doctor).
package record

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		captureCommand(a),
		namespaceCommand(a),
		importCommand(a),
		caCommand(a),
		doctorCommand(a),
	}
}
