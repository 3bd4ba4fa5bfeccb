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

// updateFlags are the values of the flags of 'unwire schema update'.
type updateFlags struct {
	// dir is the folder with the .proto files (--proto).
	dir string

	// version is the version of the client that the sources come from, for the list of evidence.
	version string

	// date is the date for the list of evidence; "" for today.
	date string

	// name is the name of the sources in the list of evidence; "" for the default.
	name string

	// from are the sources of new definitions.
	from []string

	// write changes the files instead of printing a diff.
	write bool

	// json prints JSON.
	json bool

	// partial means that the source is incomplete, so that elements that it lacks are not marked as "last
	// seen".
	partial bool

	// takeNames replaces names in the files by those of the sources, instead of reporting a conflict.
	takeNames bool

	// takeTypes replaces types in the files by those of the sources, instead of reporting a conflict.
	takeTypes bool
}

// updateCommand returns the command 'unwire schema update', which adds what sources know to .proto files.
func updateCommand(a *app.App) *cobra.Command {
	var f updateFlags
	cmd := &cobra.Command{
		Use:   "update --proto DEFINITIONS --from SOURCE…",
		Short: "Add new elements to hand-written .proto files, preserving their formatting",
		Long: `update takes new fields, messages, enum values, methods and services from SOURCE,
and adds them to your .proto files in the folder DEFINITIONS. update writes new elements
in the formatting of each file. Existing names, comments, options and blank lines, and
the order of elements, stay unchanged. Without --write, update only prints the changes
as a unified diff, and does not write them.

SOURCE is a folder of .proto files, a .proto file, a descriptor set, or the code of a
client, in which 'unwire schema extract' finds definitions. SOURCE can also be a
capture, an evidence file of 'unwire schema infer --evidence', or the JSON output of
'unwire align' or 'unwire probe'. If captures contain the same calls in JSON and in
protobuf, update takes the names of fields from the JSON messages.

If a field or a message in your files has a placeholder name (field_7, unknown7,
Unknown3), update replaces it by the name in SOURCE. update replaces other names only
with --take-names. If a field has another type in SOURCE, with the same wire format,
update replaces the type only with --take-types, or if a comment in your file marks the
type as a guess. If an element differs in any other way, update reports a conflict, and
does not change the element.

update never removes an element. If SOURCE lacks an element of your files, update marks
the element with the comment "last seen". Captures and the output of 'unwire probe'
usually lack many elements, so update adds no such comments for them, nor for any SOURCE
with --partial. For each new element, update writes its source to the file
evidence.jsonl in the folder DEFINITIONS. The exit status is 1 if there are conflicts.`,
		Example: `  # Print the fields in a capture that your .proto files lack, as a diff
  unwire schema update --proto proto/ --from F.uwc
  # Take field names from a recording of the same calls in JSON
  unwire schema update --proto proto/ --from proto.uwc json.uwc
  # Add the definitions in the code of a new client to your files
  unwire schema update --proto proto/ --from app/dist/main.js --client-version 3.1.2 --write`,
		Args: func(_ *cobra.Command, args []string) error { f.from = append(f.from, args...); return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dir == "" || len(f.from) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema update: missing --proto DIR or --from SOURCE"), "usage: "+cmd.UseLine())
			}
			return runUpdate(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "proto", "", "folder with your .proto files, to which update adds new elements")
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "source of the new elements; can be repeated; you can also give further sources as arguments")
	cmd.Flags().BoolVar(&f.write, "write", false, "write the changes to your files; if update cannot write one of the files, it changes none of them")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each change")
	cmd.Flags().BoolVar(&f.partial, "partial", false, "the source does not contain all elements: do not mark elements that it lacks with the comment \"last seen\"")
	cmd.Flags().BoolVar(&f.takeNames, "take-names", false, "replace the names in your files by the names in the source, if they differ")
	cmd.Flags().BoolVar(&f.takeTypes, "take-types", false, "replace the type of a field by the type in the source, if both have the same wire format")
	cmd.Flags().StringVar(&f.version, "client-version", "", "version of the client from which the sources come; update writes it to evidence.jsonl, the file about the origin of each element")
	options.Alias(cmd.Flags(), "version", "client-version")
	cmd.Flags().StringVar(&f.date, "date", "", "date that update writes to evidence.jsonl (default: today)")
	cmd.Flags().StringVar(&f.name, "source", "", "name that update writes to evidence.jsonl for the sources (default: the kind of the source: definitions, extraction, traffic or probe)")
	return cmd
}

// runUpdate executes 'unwire schema update'. The exit status is 1 if there are conflicts.
func runUpdate(ctx context.Context, a *app.App, f updateFlags) error {
	if f.date == "" {
		f.date = time.Now().UTC().Format(time.DateOnly)
	}
	if _, err := time.Parse(time.DateOnly, f.date); err != nil {
		return app.Usagef("--date must be a date such as 2026-03-01, not %q", f.date)
	}

	// The folder is parsed with its formatting, which the update preserves.
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

	// Calls in both codecs yield names only after all captures have been read.
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

	// Unreadable sources first, then conflicts: both change the exit code.
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

// complete sets the version, date and name of a source from the flags.
func (f updateFlags) complete(src *update.Source) {
	src.Version, src.Date = f.version, f.date
	if f.name != "" {
		src.Name = f.name
	}
}

// printUpdate prints the changes as JSON or, if the files were not written, as a diff, and the conflicts.
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
