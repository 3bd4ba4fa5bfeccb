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

func doctorCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this machine's set-up, and what to do",
		Long: `doctor looks at the local CA and who trusts it, proxy and CA variables, Node,
transparent capture, ports, the clock, the disk, what killed captures have left, and
programs that are of use beside unwire. It changes nothing and uses no network beyond loopback. The exit status
is 1 if something is there that keeps recording from working.`,
		Example: "  unwire doctor\n  unwire doctor --json | jq -r 'select(.status!=\"ok\") | .do'",
		Args:    app.ExactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	return cmd
}

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
