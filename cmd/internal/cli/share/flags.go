package share

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/decode/secret"
)

// leastNamed is the shortest secret that can be named: shorter ones occur by chance.
const leastNamed = 12

// secretFlags are the flags that name additional secrets, beyond the built-in rules.
type secretFlags struct {
	env            []string
	file, proto    string
	json           bool
	keepUnsearched bool // of redact
}

func (f *secretFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.env, "secret-env", nil, "environment variable whose value is an additional secret")
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file of additional secrets, one per line (file mode 0600)")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files (default: the built-in ones; none: no definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON Lines")
}

// redactor has the default rules and the secrets that were named.
func (f *secretFlags) redactor(a *app.App) (*redact.Redactor, error) {
	var named []string
	for _, name := range f.env {
		v := os.Getenv(name)
		if v == "" {
			return nil, app.Fail(app.ExitCredentials, fmt.Errorf("--secret-env: $%s is not set", name), "")
		}
		if len(v) < leastNamed {
			return nil, app.Usagef("--secret-env: the value of $%s is too short (less than %d bytes): it would match other data by chance", name, leastNamed)
		}
		named = append(named, v)
	}
	if f.file != "" {
		lines, err := app.ReadSecretLines(f.file, leastNamed)
		if err != nil {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("--secret-file: %w", err), "")
		}
		named = append(named, lines...)
	}
	return redact.New(redact.Options{Profile: a.Profile(), Secrets: named}), nil
}

// rules returns the rules that find secret fields by the definitions of the given captures.
func (f *secretFlags) rules(ctx context.Context, a *app.App, files ...string) (*secret.Rules, error) {
	if f.proto == app.NoDefinitions {
		return a.SecretRules(nil), nil
	}
	defs, err := a.Remembered(ctx, f.proto, files...)
	if err != nil {
		return nil, err
	}
	return a.ExportRules(ctx, defs)
}
