package schemacmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/interrupt"
)

type diffFlags struct {
	json     bool
	format   string
	captures []string
	suite    string // folder of experiments; "" for none
	capture  string // of the experiments that name none
	proto    bool   // of drift: the definitions are compared too
}

func (f *diffFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "a JSON object a change")
	flags.StringVar(&f.format, "format", "text", "text, md (Markdown) or json")
	flags.StringArrayVar(&f.captures, "captures", nil, "name the exchanges of this capture that a change touches; may be repeated")
	flags.StringVar(&f.suite, "suite", "", "name the experiments of this folder that a change touches: see replay suite")
	flags.StringVar(&f.capture, "capture", "", "capture of the experiments that name none")
}

func diffCommand(a *app.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "The changelog between two versions of definitions, and what it breaks",
		Long: `diff compares definitions element by element: what was added, removed, renamed,
retyped, relabelled, renumbered or moved, new methods first, and what each change
breaks: the wire (who speaks one version misreads the other), JSON, or only source
code. A type that was renamed or moved is found by its fields and uses, and is one
change. In which file something stands, comments and options are no difference.

OLD and NEW are each a folder of .proto files, a .proto file, a descriptor set, or
shipped code that holds definitions, as schema extract reads it.
With --captures, each change names the recorded exchanges that hold what changed;
with --suite, the experiments of replay suite that do, as recorded or as edited.
The exit status is 1 where there is a difference.`,
		Example: "  unwire schema diff proto-old/ proto/\n  unwire schema diff --format md old.binpb new.binpb > CHANGES.md\n" +
			"  unwire schema diff --captures F.uwc proto-old/ proto/",
		Args: app.ExactArgs("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDiff(cmd.Context(), a, args[0], args[1], f)
		},
	}
	f.addTo(cmd)
	return cmd
}

func runDiff(ctx context.Context, a *app.App, before, after string, f diffFlags) error {
	if err := checkChangesFormat(f.format); err != nil {
		return err
	}
	old, err := schema.LoadVersion(ctx, before, nil)
	if err != nil {
		return app.SourceError(before, err)
	}
	now, err := schema.LoadVersion(ctx, after, nil)
	if err != nil {
		return app.SourceError(after, err)
	}
	return changelog(ctx, a, old, now, nil, f)
}

func checkChangesFormat(format string) error {
	switch format {
	case "text", "md", "json":
		return nil
	}
	return app.Usagef("--format is text, md or json, not %q", format)
}

// changelog prints what changed between two versions; ours are the definitions
// that may be out of date, if there are any.
func changelog(ctx context.Context, a *app.App, old, now, ours *schema.Schema, f diffFlags) error {
	reportOmitted(a, old)
	reportOmitted(a, now)
	reportUnread(a, old)
	reportUnread(a, now)
	changes, err := interrupt.Run(ctx, func() ([]compare.Change, error) { return compare.Diff(old, now), nil })
	if err != nil {
		return err
	}
	lines := make([]contract.SchemaChange, len(changes))
	for i, c := range changes {
		lines[i].Change = c
	}
	if err := addTouched(ctx, a, lines, func() *compare.Toucher { return compare.NewToucher(old, now, changes) }, cmp.Or(ours, old), f); err != nil {
		return err
	}
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
	if err := faultsError(slices.Concat(old.Faults, now.Faults)); err != nil {
		return err
	}
	if len(lines) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// addTouched adds to changes the exchanges and the experiments that have what changed.
func addTouched(ctx context.Context, a *app.App, lines []contract.SchemaChange, toucher func() *compare.Toucher, names *schema.Schema, f diffFlags) error {
	if len(f.captures) > 0 {
		t := toucher()
		if err := touchCaptures(ctx, a, t, f.captures); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Captures = t.Touched[i]
		}
	}
	if f.suite != "" {
		t := toucher()
		if err := touchSuite(ctx, a, t, f, names); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Replays = t.Touched[i]
		}
	}
	return nil
}

// faultsError is the error of a command that did its work without the files at which
// unwire failed, nil where there are none.
func faultsError(faults []*extract.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	files := fmt.Sprintf("%s is", faults[0].File)
	if len(faults) > 1 {
		files = fmt.Sprintf("%s and %d more are", faults[0].File, len(faults)-1)
	}
	return app.Fail(app.ExitInput, fmt.Errorf("%s left out: unwire failed at %s", files, faults[0].Where),
		"this is a fault of unwire; please report it with this place, and with the file if you may")
}

// reportUnread reports which files of shipped code were not read.
func reportUnread(a *app.App, s *schema.Schema) {
	for _, err := range s.Unread {
		a.Say("unwire: not read: %s", term.Clean(err.Error()))
	}
}

// reportOmitted reports which files of a tree were left out.
func reportOmitted(a *app.App, s *schema.Schema) {
	for _, p := range s.Omitted {
		if p.Symbol == "" {
			a.Say("unwire: %s is passed over: it imports %s", p.File, p.Other)
			continue
		}
		a.Say("unwire: %s is passed over: %s declares %s, too", p.File, p.Other, p.Symbol)
	}
}

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
