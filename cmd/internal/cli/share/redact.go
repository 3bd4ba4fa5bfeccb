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

func redactCommand(a *app.App) *cobra.Command {
	var f secretFlags
	var out string
	cmd := &cobra.Command{
		Use:   "redact F.uwc -o CLEAN.uwc",
		Short: "Copy a capture without its secrets",
		Long: `redact cleans a capture that was recorded with --keep-secrets or by an older
version, or of which a secret is known now. It writes a new file, with the same
redaction as while recording. It also decodes protobuf, which recording does not
do, and replaces the fields that are known to hold secrets. Exchanges keep
their numbers, times, outcomes and chunk boundaries; what was derived is dropped.
Notes, definitions and chosen readings are copied, notes without secrets.
The new file is then audited: the exit status is 1 if something is left.

Payloads that cannot be searched ('unwire audit' lists them) are left out of the
copy, and the exchange's error says how much; --keep-unsearched keeps them.`,
		Example: "  unwire redact F.uwc -o CLEAN.uwc\n  unwire redact F.uwc -o CLEAN.uwc --secret-env MY_TOKEN",
		Args:    app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRedact(cmd.Context(), a, f, args[0], out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new capture; it must not exist (required)")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "copy payloads that cannot be searched for secrets, such as those of other protocols")
	f.addTo(cmd)
	return cmd
}

func runRedact(ctx context.Context, a *app.App, f secretFlags, file, out string) error {
	if out == "" {
		return app.Fail(app.ExitUsage, errors.New("unwire redact: missing -o CLEAN.uwc"), "the capture itself is not changed: name a new file")
	}
	if _, err := os.Lstat(out); err == nil {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s exists", out), "name a new file")
	}
	rules, err := f.rules(ctx, a, file)
	if err != nil {
		return err
	}
	red, err := f.redactor(a)
	if err != nil {
		return err
	}
	if !f.keepUnsearched {
		red = red.Omitting()
	}
	ctx, meter := a.ShowProgress(ctx, "redacting", file)
	defer meter.Stop()
	exchanges, values, omitted, err := cleanFile(ctx, a, file, out, red, rules)
	if err != nil {
		return err
	}
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
		a.Say("unwire: %s in %s; %s of known fields replaced", app.Counted(exchanges, "exchange"), out, app.Counted(values, "value"))
		sayOmitted(a, omitted)
	}
	if n > 0 {
		return app.Fail(app.ExitFinding, fmt.Errorf("%s of secrets seem to be left in %s", app.Counted(n, "value"), out), "'unwire audit "+out+"' says where")
	}
	return nil
}

// sayOmitted says what was left out because it could not be searched.
func sayOmitted(a *app.App, o secret.Omitted) {
	if o.Bytes > 0 {
		a.Say("unwire: %s of %s left out, as they cannot be searched for secrets; --keep-unsearched keeps them",
			app.Counted(int(o.Bytes), "byte"), app.Counted(o.Exchanges, "exchange"))
	}
}

// cleanFile writes the copy, which gets its name when it is complete.
func cleanFile(ctx context.Context, a *app.App, file, out string, red *redact.Redactor, rules *secret.Rules) (exchanges, values int, omitted secret.Omitted, err error) {
	from, err := a.OpenCapture(file)
	if err != nil {
		return 0, 0, omitted, err
	}
	defer from.Close()
	err = a.WholeCapture(ctx, out, store.Options{Redactor: red}, func(to *store.Store) (err error) {
		exchanges, values, omitted, err = secret.Clean(ctx, to, from.Store, rules)
		if _, serr := os.Lstat(out); err == nil && serr == nil {
			return app.Fail(app.ExitUsage, fmt.Errorf("%s exists by now", out), "name a new file")
		}
		return err
	})
	return exchanges, values, omitted, err
}
