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

// leastNamed is the minimum length in bytes of a secret that a user names. Shorter texts would match
// other data by chance.
const leastNamed = 12

// secretFlags are the values of the flags of 'unwire audit' and 'unwire redact'.
type secretFlags struct {
	// env are names of environment variables whose values are additional secrets.
	env []string

	// file is a file of additional secrets; "" for none.
	file string

	// proto names definitions; "" for the default.
	proto string

	// json prints JSON Lines.
	json bool

	// keepUnsearched keeps data that cannot be searched for secrets; only for redact.
	keepUnsearched bool
}

// addTo adds the flags to a command.
func (f *secretFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.env, "secret-env", nil, "name of an environment variable; its value is an additional secret that unwire looks for")
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file with additional secrets that unwire looks for, one on each line (file mode 0600)")
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, by which unwire recognizes protobuf fields that contain secrets; the word none means no definitions (default: the built-in definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON, one object per line")
}

// redactor returns a redactor with the built-in rules and the secrets that the flags name.
func (f *secretFlags) redactor(a *app.App) (*redact.Redactor, error) {
	var named []string
	for _, name := range f.env {
		v := os.Getenv(name)
		if v == "" {
			return nil, app.Fail(app.ExitCredentials, fmt.Errorf("--secret-env %[1]s: the environment variable $%[1]s is not set", name), "")
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

// rules returns the rules that find fields with secrets, by the definitions that apply to the given
// captures.
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
