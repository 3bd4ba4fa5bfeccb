package share

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/decode/secret"
)

// redactCommand returns the command 'unwire redact', which copies a capture without its secrets.
func redactCommand(a *app.App) *cobra.Command {
	var f secretFlags
	var out string
	cmd := &cobra.Command{
		Use:   "redact F.uwc -o CLEAN.uwc",
		Short: "Copy a capture, and replace the secrets in the copy by placeholders",
		Long: `redact copies the capture F.uwc (a file with recorded traffic) to the new file
CLEAN.uwc, and replaces secrets in the copy by placeholders. Use redact for captures
that were recorded with --keep-secrets or by an older version of unwire. You can also
give redact a secret that unwire did not recognize (--secret-env, --secret-file). redact
recognizes secrets by the same rules as 'unwire capture'. redact also decodes protobuf
messages, and replaces the fields that are known to contain secrets. In the copy,
exchanges have the same numbers, times and results. redact also copies notes,
definitions and the field types that you chose with 'unwire show --as'; it replaces
secrets in notes. At the end, redact searches the copy for secrets, like 'unwire audit'.
The exit status is 1 if the copy still contains secrets.

redact cannot search some data for secrets; 'unwire audit' lists this data. redact does
not copy it. If the copy of an exchange lacks data, 'unwire show' prints how many bytes
are missing. With --keep-unsearched, redact copies this data, too.`,
		Example: `  # Replace all secrets that unwire recognizes
  unwire redact F.uwc -o CLEAN.uwc
  # Also replace the value of the variable MY_TOKEN
  unwire redact F.uwc -o CLEAN.uwc --secret-env MY_TOKEN`,
		Args: app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRedact(cmd.Context(), a, f, args[0], out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to which redact writes the copy (required); a file with this name must not exist")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "also copy data that redact cannot search for secrets, such as data of unknown protocols")
	f.addTo(cmd)
	return cmd
}

// runRedact executes 'unwire redact': it writes a redacted copy of file to out, and audits that copy.
func runRedact(ctx context.Context, a *app.App, f secretFlags, file, out string) error {
	if out == "" {
		return app.Fail(app.ExitUsage, errors.New("unwire redact: missing -o CLEAN.uwc"), "redact does not change F.uwc: name a new file with -o")
	}
	if _, err := os.Lstat(out); err == nil {
		return app.Fail(app.ExitUsage, fmt.Errorf("the file %s exists already", out), "name a file that does not exist yet")
	}
	rules, err := f.rules(ctx, a, file)
	if err != nil {
		return err
	}
	red, err := f.redactor(a)
	if err != nil {
		return err
	}

	// What cannot be searched for secrets is left out of the copy.
	if !f.keepUnsearched {
		red = red.Omitting()
	}
	ctx, meter := a.ShowProgress(ctx, "redacting", file)
	defer meter.Stop()
	exchanges, values, omitted, err := cleanFile(ctx, a, file, out, red, rules)
	if err != nil {
		return err
	}

	// Audit the copy with a fresh redactor, so that the result does not depend on what the first
	// one learnt.
	check, err := f.redactor(a)
	if err != nil {
		return err
	}
	left, err := auditFile(ctx, a, out, check, rules)
	if err != nil {
		return err
	}
	counts := secret.Count(left)
	n := counts.Values
	if !f.keepUnsearched {
		n += counts.Unsearched
	}
	if f.json {
		err = a.Print(&contract.Redacted{
			File: out, Exchanges: exchanges, Fields: values, Left: n,
			OmittedExchanges: omitted.Exchanges, OmittedBytes: omitted.Bytes,
		})
		if err != nil {
			return err
		}
	} else {
		also := ""
		if values > 0 {
			also = ", including " + app.Counted(values, "value") + " of protobuf fields that are known to contain secrets"
		}
		a.Say("unwire: copied %s to %s, and replaced the secrets in the copy%s", app.Counted(exchanges, "exchange"), out, also)
		sayOmitted(a, omitted)
	}
	if n > 0 {
		return app.Fail(app.ExitFinding, fmt.Errorf("unwire found %s that look like secrets in the copy %s", app.Counted(n, "value"), out), "'unwire audit "+out+"' lists them")
	}
	return nil
}

// sayOmitted prints how much data was left out because it cannot be searched for secrets.
func sayOmitted(a *app.App, o secret.Omitted) {
	if o.Bytes > 0 {
		a.Say("unwire: the copy lacks %s of %s, which cannot be searched for secrets; --keep-unsearched keeps these bytes",
			app.Counted(int(o.Bytes), "byte"), app.Counted(o.Exchanges, "exchange"))
	}
}

// cleanFile writes a redacted copy of a capture to out, which appears when it is complete. It returns the
// number of copied exchanges and replaced values, and what was left out.
func cleanFile(ctx context.Context, a *app.App, file, out string, red *redact.Redactor, rules *secret.Rules) (exchanges, values int, omitted secret.Omitted, err error) {
	from, err := a.OpenCapture(file)
	if err != nil {
		return 0, 0, omitted, err
	}
	defer from.Close()
	err = a.WholeCapture(ctx, out, store.Options{Redactor: red}, func(to *store.Store) (err error) {
		exchanges, values, omitted, err = secret.Clean(ctx, to, from.Store, rules)
		if _, serr := os.Lstat(out); err == nil && serr == nil {
			return app.Fail(app.ExitUsage, fmt.Errorf("another program has created the file %s", out), "name a file that does not exist yet")
		}
		return err
	})
	return exchanges, values, omitted, err
}
