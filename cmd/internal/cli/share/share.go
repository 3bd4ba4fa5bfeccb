// Package share has the commands for captures that leave the machine: export, redact and
// audit.
//
// The flags in common name what is a secret besides what the rules know. The work is
// done by captures/formats, captures/store and decode/secret; capturetext prints.
package share

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the commands export, redact and audit.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{exportCommand(a), redactCommand(a), auditCommand(a)}
}
