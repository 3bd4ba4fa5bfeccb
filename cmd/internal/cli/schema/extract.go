package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/schema/bundle"
	"unwire/schema/extract"
)

type extractFlags struct {
	out, set string
	asJSON   bool
}

func extractCommand(a *app.App) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract INPUT…",
		Short: "Write the .proto that shipped code was generated from",
		Long: `extract reads what ships definitions, and writes them: one file a package.

  JavaScript   .js, .mjs, .cjs; bundled and minified or not
  archives     asar, vsix, zip, jar, whl, apk, tgz and other tars, deb, AppImage,
               squashfs, gzip, bzip2, xz, zstd, and archives in them
  executables  and libraries, with the descriptors that Go, C++, Rust, .NET and
               others embed, and scripts that stand in them as text; Java classes;
               generated sources (_pb2.py, .pb.cc, …)
  descriptors  a descriptor set, or any file with descriptors in it
  folders      of all these; links in them are not followed

Nothing is executed, and of archives nothing is unpacked to disk.

Codegens whose output is read: ` + strings.Join(bundle.Codegens(), ", ") + `.

Without -o and --descriptor-set nothing is written but the summary. What could
not be resolved is listed with its place; the rest compiles all the same: a
field whose type is missing is declared as bytes, or int32 for an enum, which
has the same wire format. The exit status is 3 if no input holds a schema, or if
unwire failed at a file: the file is listed, and the others are read.`,
		Example: `  unwire schema extract -o proto-new/ app/dist/main.js
  unwire schema extract -o proto-new/ editor.AppImage extension.vsix package.tgz
  unwire schema extract --descriptor-set all.binpb --json app/ | jq .unresolved`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema extract: missing argument INPUT"), "usage: "+cmd.UseLine())
			}
			return runExtract(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "folder for the .proto files")
	cmd.Flags().StringVar(&f.set, "descriptor-set", "", "file for a FileDescriptorSet of all, with what it imports")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "a summary of each input as JSON")
	return cmd
}

func runExtract(ctx context.Context, a *app.App, f extractFlags, inputs []string) error {
	x := extraction{App: a, extractFlags: f}
	progress, done := schematext.ExtractProgress(a.Err)
	defer done()
	for _, input := range inputs {
		src, err := extract.Read(ctx, input, progress)
		if err != nil {
			return app.Fail(app.ExitInput, err, "")
		}
		done()
		if err := nothingLookedAt(src); err != nil {
			return err
		}
		if err := x.addSource(ctx, src); err != nil {
			return err
		}
	}
	if err := printExtracted(a, x.lines, f.asJSON); err != nil {
		return err
	}
	if err := faultsError(x.faults); x.total == 0 && err != nil {
		return err
	}
	if x.total == 0 {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", strings.Join(inputs, ", "), extract.ErrNothing),
			"looked for the output of "+strings.Join(bundle.Codegens(), ", ")+",\nand for descriptors in "+formatNames())
	}
	set, err := extract.Merge(ctx, x.sources...)
	if err != nil {
		return app.Fail(app.ExitInput, err, "")
	}
	if len(x.sources) > 1 {
		for _, u := range set.Unresolved {
			x.reportUnresolved(u)
		}
	}
	if err := writeExtracted(a, set, f); err != nil {
		return err
	}
	return faultsError(x.faults)
}

// An extraction is what was extracted from several inputs.
type extraction struct {
	*app.App
	extractFlags
	sources []*extract.Source
	lines   []contract.SchemaExtraction
	faults  []*extract.Fault
	total   int
}

// addSource adds what an input declares.
func (x *extraction) addSource(ctx context.Context, src *extract.Source) error {
	x.faults = append(x.faults, src.Faults...)
	alone, err := extract.Merge(ctx, src)
	if err != nil {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", src.Input, err), "")
	}
	n := alone.Count()
	x.total += n.Messages + n.Enums + n.Services + len(alone.Imports)
	x.sources, x.lines = append(x.sources, src), append(x.lines, *contract.NewSchemaExtraction(src, alone))
	for _, u := range slices.Concat(src.Unresolved, alone.Unresolved) {
		if u.Place.File == "" {
			u.Place.File = src.Input
		}
		x.reportUnresolved(u)
	}
	return nil
}

// reportUnresolved reports an element that is not complete, unless the output is JSON, which has it.
func (x *extraction) reportUnresolved(u bundle.Unresolved) {
	if !x.asJSON {
		x.Say("unwire: %s", term.Clean(fmt.Sprintf("%s: %s: %s", u.Place, u.Element, u.Reason)))
	}
}

// nothingLookedAt is the error where an input has no file that could hold a schema.
func nothingLookedAt(src *extract.Source) error {
	if src.Looked > 0 {
		return nil
	}
	switch src.Skipped {
	case 0:
		return app.Fail(app.ExitInput, fmt.Errorf("%s: no files in it", src.Input), "give files, or a folder or archive of files")
	case 1:
		return app.Fail(app.ExitInput, fmt.Errorf("%s: of no known kind", src.Input), "known are "+formatNames())
	default:
		return app.Fail(app.ExitInput, fmt.Errorf("%s: of no known kind, none of its %d files", src.Input, src.Skipped), "known are "+formatNames())
	}
}

func formatNames() string { return strings.Join(extract.FormatNames(), ", ") }

func printExtracted(a *app.App, lines []contract.SchemaExtraction, asJSON bool) error {
	if asJSON {
		for i := range lines {
			if err := a.Print(&lines[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return schematext.Extractions(a.Out, lines)
}

func writeExtracted(a *app.App, set *extract.Set, f extractFlags) error {
	if f.set != "" {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set.DescriptorSet())
		if err != nil {
			return err
		}
		if err := app.WholeFile(f.set, app.ForAll, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return err
		}
		a.Say("%s", f.set)
	}
	if f.out == "" {
		return nil
	}
	return writeFolder(a, f.out, set.Print())
}
