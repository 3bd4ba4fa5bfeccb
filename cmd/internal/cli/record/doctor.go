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
	var rows [][]string
	for _, c := range checks {
		if !asJSON {
			rows = append(rows, []string{statusWord(a, c.Status), c.Name, c.What, c.Do})
			continue
		}
		err := a.Print(&contract.Check{Check: c.Name, Status: string(c.Status), What: c.What, Do: c.Do})
		if err != nil {
			return err
		}
	}
	if !asJSON {
		if err := a.Out.Table([]string{"STATUS", "CHECK", "WHAT", "WHAT TO DO"}, rows); err != nil {
			return err
		}
	}
	if doctor.Worst(checks) == doctor.Fail {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

func statusWord(a *app.App, s doctor.Status) string {
	if a.Out.TTY {
		// A table's cells are cleaned of colours: capitals stand out instead.
		switch s {
		case doctor.Warn:
			return "WARN"
		case doctor.Fail:
			return "FAIL"
		}
	}
	return string(s)
}
