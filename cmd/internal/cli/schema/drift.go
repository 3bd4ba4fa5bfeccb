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

// driftCommand returns the command 'unwire drift', which reports how the API changed between two versions
// of a client.
func driftCommand(a *app.App) *cobra.Command {
	var f diffFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "drift OLD NEW",
		Short: "List protocol changes between two versions of a client",
		Long: `drift finds the protobuf definitions in the code of two versions of a client, OLD
and NEW, and lists the changes between them. New methods are first in the list. For each
change, drift prints what it breaks: the wire format, JSON messages, or only source code
that uses the definitions. OLD and NEW can be JavaScript bundles, archives, packages,
executables or folders of these, as for 'unwire schema extract'. OLD and NEW can also be
.proto files, or folders of .proto files.

With --proto, drift also checks for each change which version your own .proto definitions
describe. If they still describe the old version, the column YOUR DEFINITIONS says
"outdated".
'unwire schema update' then updates your files. With --traffic, drift also lists the
recorded exchanges that contain changed fields or methods. A server of the new version
may answer these requests differently. With --suite, drift also lists the experiments of
'unwire replay suite' that use changed fields in their request or in their edits.

The exit status is 1 if there is a change, and 3 if drift could not read a file. drift
lists the files that it could not read; the list of changes may then be incomplete or
wrong.`,
		Example: `  # Compare two releases of a program
  unwire drift old.AppImage new.AppImage
  # Also find the changes that affect your .proto files and recorded traffic
  unwire drift --proto proto/ --traffic F.uwc app-1.0.tgz app-2.0.tgz
  # Also list the tests of 'unwire replay suite' that the changes affect
  unwire drift --suite experiments --default-capture F.uwc app-1.0/ app-2.0/
  # Write the changes as Markdown
  unwire drift --format md app-1.0/ app-2.0/ > DRIFT.md`,
		Args: app.ExactArgs("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDrift(cmd.Context(), a, args[0], args[1], dir, f)
		},
	}
	f.addTo(cmd)
	cmd.Flags().StringVar(&dir, "proto", "", "your own .proto definitions; for each change, drift reports whether they are outdated; with the word none, drift does not report this (default: the definitions in the capture of --traffic or --default-capture, else the built-in definitions)")
	return cmd
}

// runDrift executes 'unwire drift': it extracts the definitions of two client versions, and prints the
// changes and whether the user's definitions in dir have them.
func runDrift(ctx context.Context, a *app.App, before, after, dir string, f diffFlags) error {
	if err := checkChangesFormat(f.format); err != nil {
		return err
	}
	progress, done := schematext.ExtractProgress(a.Err)
	defer done()
	var versions [2]*schema.Schema
	for i, name := range []string{before, after} {
		s, err := a.LoadVersion(ctx, name, progress)
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

// declaredTypes returns the full names of all messages and services in several sets of definitions.
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

// driftHint returns a hint for a client whose definitions cannot be extracted; "" if its file does not
// exist.
func driftHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return "'unwire schema extract --help' lists the supported inputs"
}
