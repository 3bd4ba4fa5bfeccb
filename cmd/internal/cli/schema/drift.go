package schemacmd

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema"
)

func driftCommand(a *app.App) *cobra.Command {
	var f diffFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "drift OLD NEW",
		Short: "What changed in the protocol between two versions of a client",
		Long: `drift extracts the definitions of two versions of shipped code and lists what
changed. New methods come first. Like schema diff, it says what each change breaks.
OLD and NEW are anything that schema extract reads: bundles, archives, packages,
executables, folders of them; or definitions, such as a folder of .proto files.

The column PROTO says "outdated" where the definitions of --proto still are as OLD
is, so that schema update has something to do there. With --traffic, each
change names the recorded exchanges that hold what changed: those whose replay
may go another way against NEW. With --suite, it names the experiments of replay
suite that hold it, as recorded or as edited.
The exit status is 1 where there is a change, and 3 if unwire failed at a file,
which is then listed: changes of what it declares are missing or wrong.`,
		Example: "  unwire drift old.AppImage new.AppImage\n" +
			"  unwire drift --proto proto/ --traffic F.uwc app-1.0.tgz app-2.0.tgz\n" +
			"  unwire drift --suite experiments --default-capture F.uwc app-1.0/ app-2.0/\n" +
			"  unwire drift --format md app-1.0/ app-2.0/ > DRIFT.md",
		Args: app.ExactArgs("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDrift(cmd.Context(), a, args[0], args[1], dir, f)
		},
	}
	f.addTo(cmd)
	cmd.Flags().StringVar(&dir, "proto", "", "definitions to keep up to date (default: those that a capture of --traffic or --default-capture keeps, or the built-in ones; none for none)")
	return cmd
}

func runDrift(ctx context.Context, a *app.App, before, after, dir string, f diffFlags) error {
	if err := checkChangesFormat(f.format); err != nil {
		return err
	}
	progress, done := schematext.ExtractProgress(a.Err)
	defer done()
	var versions [2]*schema.Schema
	for i, name := range []string{before, after} {
		s, err := schema.LoadVersion(ctx, name, progress)
		if done(); err != nil {
			return app.Fail(app.ExitInput, err, driftHint(err))
		}
		versions[i] = s
	}
	ours, err := a.FindDefinitions(ctx, dir, declaredTypes(versions[:]), append(slices.Clone(f.captures), f.capture)...)
	if err != nil {
		return err
	}
	f.proto = ours != nil
	return changelog(ctx, a, versions[0], versions[1], ours, f)
}

// declaredTypes are the full names of the messages and services of definitions, to tell by
// whether the built-in definitions are of the same packages.
func declaredTypes(list []*schema.Schema) []string {
	var names []string
	for _, s := range list {
		for md := range s.Messages() {
			names = append(names, string(md.FullName()))
		}
		for sd := range s.Services() {
			names = append(names, string(sd.FullName()))
		}
	}
	return names
}

func driftHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return "drift reads what schema extract reads: see 'unwire schema extract --help'"
}
