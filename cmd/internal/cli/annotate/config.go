package annotate

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures/profile"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/project"
	"unwire/cmd/internal/term"
)

func configCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show what the unwire.yaml of this folder says, and check it",
		Long: `config prints which unwire.yaml applies in the working folder and what it says. It is
looked for there and in the folders above, up to the home folder, or to a folder of
another user. It must belong to you, and others must not be able to write to it.

  definitions: proto/         # for every command that decodes; or a list
  profile: none               # as --profile
  weights: weights.json       # of 'unwire chat'
  redact:                     # secrets in addition to those that unwire knows
    headers: [x-shop-session]
    names: [sessionHandle]    # query parameters and JSON members
    keys: [{prefix: shop_, min-length: 20}]
    fields: [shop.v1.Session.token]

Definitions are taken from the first of these that is there: --proto, UNWIRE_PROTO, what
the capture keeps ('unwire use'), unwire.yaml, and the built-in ones where they apply.

The file can only restrict: hosts, --live, CAs, kept secrets, credentials and commands are
set by flags alone. Its first use is announced, and so is each change of it.`,
		Example: "  unwire config\n  unwire config schema > unwire.schema.json",
		Args:    app.ExactArgs(),
		RunE:    func(*cobra.Command, []string) error { return showConfig(a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object")
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of unwire.yaml, for editors",
		Long: `schema prints the JSON Schema of unwire.yaml. Editors with the YAML language server
take it from a first line such as
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
	if asJSON {
		return a.Print(newProjectFile(f))
	}
	if path == "" {
		a.Say("unwire: no %s applies in this folder", project.Name)
		return nil
	}
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
	add("secret names", strings.Join(f.Secrets.Names, ", "))
	for _, k := range f.Secrets.Keys {
		add("secret keys", fmt.Sprintf("%s and %d or more letters and digits", k.Prefix, k.MinLength))
	}
	add("secret fields", f.Secrets.Fields...)
	return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{{Name: "WHAT"}, {Name: "VALUE", Shorten: term.Middle, Min: 20}}})
}

// newProjectFile is the contract's object for a file.
func newProjectFile(f *project.File) *contract.ProjectFile {
	list := func(s []string) []string { return append([]string{}, s...) }
	keys := func(s []profile.Key) []contract.ProjectKey {
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
