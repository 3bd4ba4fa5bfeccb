package schemacmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/interrupt"
)

// diffFlags are the values of the flags of 'unwire schema diff' and 'unwire drift'.
type diffFlags struct {
	// json prints JSON.
	json bool

	// format is "text", "md" or "json".
	format string

	// captures are searched for exchanges that use the changed elements.
	captures []string

	// suite is a folder of replay experiments that is searched in the same way; "" for none.
	suite string

	// capture is the capture for experiments that do not name one.
	capture string

	// proto means that drift also compares the user's own definitions. It is not a flag.
	proto bool
}

// addTo adds the flags to a command.
func (f *diffFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each change")
	flags.StringVar(&f.format, "format", "text", "output format: text, md (Markdown) or json")
	flags.StringArrayVar(&f.captures, "traffic", nil, "for each change, also list the exchanges of this capture that contain the changed field or method; can be repeated")
	flags.StringVar(&f.suite, "suite", "", "for each change, also list the experiments of 'unwire replay suite' in this folder that use the changed field or method")
	flags.StringVar(&f.capture, "default-capture", "", "with --suite: capture for the experiments whose file has no line 'capture F.uwc'")
	options.Alias(flags, "captures", "traffic")
	options.Alias(flags, "capture", "default-capture")
}

// diffCommand returns the command 'unwire schema diff'.
func diffCommand(a *app.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "List the changes between two versions of definitions, and what they break",
		Long: `diff compares two versions of .proto definitions, and lists the changes:
messages, fields, enum values and methods that were added, removed, renamed, moved, or
that have another type, label or number. New methods are first in the list. For each
change, diff prints what it breaks: the wire format (a program with the other version
reads messages wrongly), JSON messages, or only source code that uses the definitions.
diff recognizes a renamed or moved type by its fields and uses, and reports one change
for it. diff ignores changes of file names, comments and options.

OLD and NEW are folders of .proto files, single .proto files, descriptor sets, or the
code of a client in which 'unwire schema extract' finds definitions. With --traffic,
diff also lists the recorded exchanges that contain changed fields. With --suite, diff
also lists the experiments of 'unwire replay suite' that use changed fields in their
request or in their edits. The exit status is 1 if there is a change.`,
		Example: `  # List the changes between two folders of .proto files
  unwire schema diff proto-old/ proto/
  # Compare two descriptor sets, and write the changes as Markdown
  unwire schema diff --format md old.binpb new.binpb > CHANGES.md
  # Also list the recorded exchanges that contain changed fields
  unwire schema diff --traffic F.uwc proto-old/ proto/`,
		Args: app.ExactArgs("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDiff(cmd.Context(), a, args[0], args[1], f)
		},
	}
	f.addTo(cmd)
	return cmd
}

// runDiff executes 'unwire schema diff': it prints the changes between two versions of definitions or
// client code.
func runDiff(ctx context.Context, a *app.App, before, after string, f diffFlags) error {
	if err := checkChangesFormat(f.format); err != nil {
		return err
	}
	old, err := a.LoadVersion(ctx, before, nil)
	if err != nil {
		return app.SourceError(before, err)
	}
	now, err := a.LoadVersion(ctx, after, nil)
	if err != nil {
		return app.SourceError(after, err)
	}
	return changelog(ctx, a, old, now, nil, f)
}

// checkChangesFormat returns a usage error for an invalid value of --format.
func checkChangesFormat(format string) error {
	switch format {
	case "text", "md", "json":
		return nil
	}
	return app.Usagef("--format must be text, md or json, not %q", format)
}

// changelog prints the changes between two versions of a client's definitions. ours, if not nil, are
// the user's definitions, which may need an update.
func changelog(ctx context.Context, a *app.App, old, now, ours *schema.Schema, f diffFlags) error {
	reportOmitted(a, old)
	reportOmitted(a, now)
	reportUnread(a, old)
	reportUnread(a, now)

	// Comparing large definitions takes seconds, so it can be interrupted.
	changes, err := interrupt.Run(ctx, func() ([]compare.Change, error) { return compare.Diff(old, now), nil })
	if err != nil {
		return err
	}
	lines := make([]contract.SchemaChange, len(changes))
	for i, c := range changes {
		lines[i].Change = c
	}
	if err := addTouched(ctx, a, lines, func() *compare.TouchedExchanges { return compare.NewTouchedExchanges(old, now, changes) }, cmp.Or(ours, old), f); err != nil {
		return err
	}

	// With the user's own definitions, mark the changes that they lack.
	if ours != nil {
		outdated, err := interrupt.Run(ctx, func() ([]bool, error) { return compare.Outdated(changes, ours, now), nil })
		if err != nil {
			return err
		}
		for i := range lines {
			if outdated[i] {
				lines[i].Proto = contract.Outdated
			}
		}
	}
	if err := printChanges(a, lines, f); err != nil {
		return err
	}
	if ours != nil && len(lines) > 0 {
		a.Say("%s", schematext.OutdatedSummary(lines))
	}

	// Unreadable input makes the changelog incomplete, which takes precedence over findings.
	if err := faultsError(slices.Concat(old.Faults, now.Faults)); err != nil {
		return err
	}
	if len(lines) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// addTouched adds to each change in lines the recorded exchanges and the replay experiments that use the
// changed element. newSearch returns a new search for uses of the changed elements; names are the
// definitions for field names in experiments.
func addTouched(ctx context.Context, a *app.App, lines []contract.SchemaChange, newSearch func() *compare.TouchedExchanges, names *schema.Schema, f diffFlags) error {
	if len(f.captures) > 0 {
		t := newSearch()
		if err := touchCaptures(ctx, a, t, f.captures); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Captures = t.Touched[i]
		}
	}
	if f.suite != "" {
		t := newSearch()
		if err := touchSuite(ctx, a, t, f, names); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Replays = t.Touched[i]
		}
	}
	return nil
}

// faultsError returns an error that lists the files that could not be extracted, for a command that has
// processed all others; nil if there are none.
func faultsError(faults []*extract.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	files := fmt.Sprintf("%s was", faults[0].File)
	if len(faults) > 1 {
		files = fmt.Sprintf("%s and %s were", faults[0].File, app.Counted(len(faults)-1, "more file"))
	}
	return app.Fail(app.ExitInput, fmt.Errorf("unwire skipped %s because of an internal error at %s", files, faults[0].Where),
		"this is a bug in unwire: please report it with this location, and with the file if you may share it")
}

// reportUnread prints which files of a client's code could not be read.
func reportUnread(a *app.App, s *schema.Schema) {
	for _, err := range s.Unread {
		a.Say("unwire: skipped a file: %s", term.Clean(app.PlainText(err)))
	}
}

// reportOmitted prints which .proto files were left out because they conflict with others, or import one
// that does.
func reportOmitted(a *app.App, s *schema.Schema) {
	for _, p := range s.Omitted {
		if p.Symbol == "" {
			a.Say("unwire: skipped %s: it imports %s", p.File, p.Other)
			continue
		}
		a.Say("unwire: skipped %s: %s also declares %s", p.File, p.Other, p.Symbol)
	}
}

// printChanges prints changes between definitions in the format that the flags select.
func printChanges(a *app.App, lines []contract.SchemaChange, f diffFlags) error {
	if f.json || f.format == "json" {
		for i := range lines {
			if err := a.Print(&lines[i]); err != nil {
				return err
			}
		}
		a.Say("%s", schematext.ChangesSummary(lines))
		return nil
	}
	var err error
	if f.format == "md" {
		err = schematext.ChangesMarkdown(a.Out, lines)
	} else if len(lines) > 0 {
		err = schematext.Changes(a.Out, lines, schematext.ChangeColumns{Captures: len(f.captures) > 0, Replays: f.suite != "", Proto: f.proto})
	}
	a.Say("%s", schematext.ChangesSummary(lines))
	return err
}
