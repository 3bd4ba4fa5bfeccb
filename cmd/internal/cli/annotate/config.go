package annotate

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures/profile"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/project"
	"unwire/cmd/internal/term"
)

// configCommand returns the command 'unwire config', which shows the settings of unwire.yaml.
func configCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the unwire.yaml that applies in this folder",
		Long: `The file unwire.yaml contains settings for the commands of unwire. config prints
the path and the settings of the file that applies in the working folder. unwire looks
for the file in the working folder, then in the folder above it, and so on up to your
home folder, or up to a folder of another user. unwire reads the file only if it belongs
to you and no other user can write to it. This is an example of the file:

  definitions: proto/         # folder of .proto files, or a list of folders
  profile: none               # the same as the flag --profile
  weights: weights.json       # weights file for 'unwire chat'
  redact:                     # additional secrets that unwire replaces
    headers: [x-shop-session]
    names: [sessionHandle]    # query parameters and JSON members
    keys: [{prefix: shop_, min-length: 20}]
    fields: [shop.v1.Session.token]

unwire uses the definitions from the first of these sources that exists: the flag
--proto, the variable UNWIRE_PROTO, the capture ('unwire use' stores definitions in it),
unwire.yaml, and the definitions that are built into unwire.

Some settings are possible only as flags, not in unwire.yaml, because they could do
harm: allowed hosts, CAs, credentials, commands that unwire runs, --live and
--keep-secrets. unwire prints a notice when it uses a file for the first time, and when
the file has changed.`,
		Example: `  # Check unwire.yaml, and show its settings
  unwire config
  # Write a JSON Schema, with which your editor checks unwire.yaml
  unwire config schema > unwire.schema.json`,
		Args: app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error { return showConfig(a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the settings as one JSON object")
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of unwire.yaml, for editors",
		Long: `schema prints the JSON Schema of the file unwire.yaml. With this schema, editors
that use the YAML language server check and complete the settings. For this, write the
schema to a file such as unwire.schema.json, and begin unwire.yaml with this line:
  # yaml-language-server: $schema=unwire.schema.json`,
		Example: "  unwire config schema > unwire.schema.json",
		Args:    app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Out, project.SchemaJSON(app.Profiles()))
			return err
		},
	})
	return cmd
}

// showConfig prints the settings of the unwire.yaml that applies in the working folder, as text or JSON.
func showConfig(a *app.App, asJSON bool) error {
	path, err := a.ProjectFile()
	if err != nil {
		return err
	}
	f := &project.File{}
	if path != "" {
		if f, err = app.ReadProject(path); err != nil {
			return err
		}
	}

	// JSON is printed even without a file, so that scripts need no special case.
	if asJSON {
		return a.Print(newProjectFile(f))
	}
	if path == "" {
		a.Say("unwire: no %s applies in this folder", project.Name)
		return nil
	}

	// A missing file would otherwise be reported only by the command that needs it.
	for _, name := range append(slices.Clone(f.Definitions), f.Weights) {
		if _, err := os.Stat(name); name != "" && err != nil {
			return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", path, err), "correct the path in unwire.yaml; paths are relative to the folder of unwire.yaml")
		}
	}

	// The settings as a table; an absent setting has no row.
	rows := [][]string{{"file", path}}
	add := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				rows = append(rows, []string{name, term.Clean(v)})
			}
		}
	}
	add("definitions", f.Definitions...)
	add("profile", f.Profile)
	add("weights", f.Weights)
	add("secret headers", strings.Join(f.Secrets.Headers, ", "))
	add("secret parameters and JSON members", strings.Join(f.Secrets.Names, ", "))
	for _, k := range f.Secrets.Keys {
		add("secret API keys", fmt.Sprintf("the prefix %s, followed by %d or more letters and digits", k.Prefix, k.MinLength))
	}
	add("secret fields", f.Secrets.Fields...)
	return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{{Name: "SETTING"}, {Name: "VALUE", Shorten: term.Middle, Min: 20}}})
}

// newProjectFile converts the settings of an unwire.yaml to the object that 'unwire config --json'
// prints.
func newProjectFile(f *project.File) *contract.ProjectFile {
	list := func(s []string) []string { return append([]string{}, s...) }
	keys := func(s []profile.KeyShape) []contract.ProjectKey {
		all := []contract.ProjectKey{}
		for _, k := range s {
			all = append(all, contract.ProjectKey{Prefix: k.Prefix, MinLength: k.MinLength})
		}
		return all
	}
	return &contract.ProjectFile{
		File: f.Path, Definitions: list(f.Definitions), Profile: f.Profile, Weights: f.Weights,
		Redact: contract.ProjectRules{Headers: list(f.Secrets.Headers), Names: list(f.Secrets.Names), Keys: keys(f.Secrets.Keys), Fields: list(f.Secrets.Fields)},
	}
}
