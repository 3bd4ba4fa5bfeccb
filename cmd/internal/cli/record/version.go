package record

import (
	"fmt"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// versionCommand returns the command 'unwire version'.
func versionCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit, the version of Go and the platform",
		Example: "  unwire version\n  unwire version --json | jq -r .commit",
		Args:    app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.Print(app.Build())
			}
			_, err := fmt.Fprintf(a.Out, "unwire %s\n", app.Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the same information as one JSON object")
	return cmd
}
