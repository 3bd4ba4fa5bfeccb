package record

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/doctor"
	"unwire/cmd/internal/render/capturetext"
)

// doctorCommand returns the command 'unwire doctor', which checks whether this machine is ready for
// recording.
func doctorCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine for problems that prevent recording, and suggest fixes",
		Long: `doctor checks whether 'unwire capture' can record on this machine. doctor checks
unwire's local CA, the trust stores, and the proxy and CA variables in the environment.
doctor checks Node, and the network namespaces that capture --transparent needs. doctor
also checks ports, the clock and the free disk space, and looks for files that a killed
capture left behind, and for programs that some commands of unwire run. For each
problem, doctor suggests a fix. doctor itself changes nothing, and connects only to
loopback addresses. The exit status is 1 if a problem prevents recording.`,
		Example: `  # Check this machine
  unwire doctor
  # Print only the suggested fixes
  unwire doctor --json | jq -r 'select(.status!="ok") | .do'`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each check")
	return cmd
}

// runDoctor executes 'unwire doctor'. The exit status is 1 if a check failed.
func runDoctor(ctx context.Context, a *app.App, asJSON bool) error {
	dir, err := app.ConfigDir()
	if err != nil {
		return err
	}
	m := doctor.Machine{CADir: filepath.Join(dir, "ca"), Folder: ".", TempDir: os.TempDir(), Getenv: os.Getenv, Now: time.Now, Transparent: tryTransparent}
	checks := m.Run(ctx)
	list := make([]*contract.Check, len(checks))
	for i, c := range checks {
		list[i] = &contract.Check{Check: c.Name, Status: string(c.Status), What: c.What, Do: c.Do}
		if !asJSON {
			continue
		}
		if err := a.Print(list[i]); err != nil {
			return err
		}
	}
	if !asJSON {
		if err := capturetext.Checks(a.Out, list); err != nil {
			return err
		}
	}
	if doctor.Worst(checks) == doctor.Fail {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}
