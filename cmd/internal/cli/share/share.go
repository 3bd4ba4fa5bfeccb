// Package share has the commands for captures that leave the machine: export, redact and
// audit.
package share

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands are the commands of this group.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{exportCommand(a), redactCommand(a), auditCommand(a)}
}
