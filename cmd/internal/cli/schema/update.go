package schemacmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/schema/update"
	"unwire/schema/update/source"
)

type updateFlags struct {
	dir, version, date, name string
	from                     []string
	write, json, partial     bool
	takeNames, takeTypes     bool
}

func updateCommand(a *app.App) *cobra.Command {
	var f updateFlags
	cmd := &cobra.Command{
		Use:   "update --proto DIR --from SOURCE…",
		Short: "Splice what a source says into hand-written .proto files, and change nothing else of them",
		Long: `update brings the .proto files below DIR up to date. Without --write it prints the
change as a unified diff. New fields, messages, enum values, methods and services
are spliced in at their place in each file's own formatting; names, comments, order,
options and blank lines stay byte for byte.

SOURCE is a folder of .proto files, a .proto file, a descriptor set, code that
'schema extract' reads, captures, the evidence of 'schema infer', what 'align'
writes, or the JSON of a probe. Calls that the captures have in both codecs give
names. Placeholders (field_7, unknown7, Unknown3) get real names. A real name is
replaced only with --take-names, and a type that the same bytes fit only with
--take-types or where a comment says that it is a guess; what is to be decided first
is listed as a conflict, and left out.

What definitions have no more is marked "last seen", never removed; --partial says
that a source is not all there is. Traffic and probes never are. DIR/evidence.jsonl
tells where each new element comes from. The exit status is 1 with conflicts.`,
		Example: `  unwire schema update --proto proto/ --from F.uwc
  unwire schema update --proto proto/ --from proto.uwc json.uwc
  unwire schema update --proto proto/ --from app/dist/main.js --client-version 3.1.2 --write`,
		Args: func(_ *cobra.Command, args []string) error { f.from = append(f.from, args...); return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dir == "" || len(f.from) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema update: --proto DIR and --from SOURCE are needed"), "usage: "+cmd.UseLine())
			}
			return runUpdate(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "proto", "", "folder of the .proto files to update")
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "what to update from; may be repeated, later ones as arguments")
	cmd.Flags().BoolVar(&f.write, "write", false, "write the files, all or none")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a change")
	cmd.Flags().BoolVar(&f.partial, "partial", false, "what the definitions do not have is not gone")
	cmd.Flags().BoolVar(&f.takeNames, "take-names", false, "let a source's names replace others")
	cmd.Flags().BoolVar(&f.takeTypes, "take-types", false, "let a source's types replace others that the same bytes fit")
	cmd.Flags().StringVar(&f.version, "client-version", "", "version of the client that the sources are of")
	options.Alias(cmd.Flags(), "version", "client-version")
	cmd.Flags().StringVar(&f.date, "date", "", "date for the evidence (default: today)")
	cmd.Flags().StringVar(&f.name, "source", "", "what the evidence calls the sources (default: definitions, extraction, traffic, probe)")
	return cmd
}

func runUpdate(ctx context.Context, a *app.App, f updateFlags) error {
	if f.date == "" {
		f.date = time.Now().UTC().Format(time.DateOnly)
	}
	if _, err := time.Parse(time.DateOnly, f.date); err != nil {
		return app.Usagef("--date is a day such as 2026-03-01, not %q", f.date)
	}
	folder, err := source.ReadFolder(ctx, f.dir)
	if err != nil {
		return err
	}
	loader := &source.Loader{Have: folder.Schema, Partial: f.partial}
	var sources []update.Source
	for _, input := range f.from {
		src, err := UpdateSource(ctx, a, loader, input)
		if err != nil {
			return err
		}
		f.complete(src)
		sources = append(sources, *src)
	}
	r, err := folder.Update(ctx, sources, &loader.Calls, f.complete, update.Options{TakeNames: f.takeNames, TakeTypes: f.takeTypes})
	if err != nil {
		return err
	}
	if f.write {
		if err := update.WriteFiles(f.dir, r.Files); err != nil {
			return err
		}
	}
	if err := printUpdate(a, r, f); err != nil {
		return err
	}
	for _, src := range sources {
		if err := faultsError(src.Faults); err != nil {
			return err
		}
	}
	if len(r.Conflicts()) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// complete sets what the flags say of a source.
func (f updateFlags) complete(src *update.Source) {
	src.Version, src.Date = f.version, f.date
	if f.name != "" {
		src.Name = f.name
	}
}

func printUpdate(a *app.App, r *update.Result, f updateFlags) error {
	if f.json {
		for _, c := range r.Changes {
			if err := a.Print(&contract.SchemaUpdate{Change: c}); err != nil {
				return err
			}
		}
	} else if !f.write {
		if err := schematext.UpdateDiff(a.Out, r.Files); err != nil {
			return err
		}
	}
	if !f.json {
		for _, c := range r.Conflicts() {
			a.Say("unwire: conflict: %s", term.CleanText(schematext.Conflict(c)))
		}
	}
	a.Say("%s", schematext.UpdateSummary(r, f.write))
	return nil
}
