package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/outbound"
	"unwire/schema/bundle"
	"unwire/schema/bundle/model"
	"unwire/schema/extract"
)

// extractFlags are the values of the flags of 'unwire schema extract'.
type extractFlags struct {
	// Target has the flags about hosts and credentials, for reflect:URL.
	app.Target

	// out is the folder for .proto files; "" for none.
	out string

	// set is the file for a descriptor set; "" for none.
	set string

	// asJSON prints the counts as JSON.
	asJSON bool
}

// extractCommand returns the command 'unwire schema extract', which extracts definitions from a client's
// code.
func extractCommand(a *app.App) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract INPUT…",
		Short: "Extract .proto files from shipped code",
		Long: `extract finds protobuf definitions in the code of a program, such as a client,
and writes one .proto file for each protobuf package. INPUT can be one of these:

  JavaScript   files .js, .mjs and .cjs, also if they are bundled or minified
  archives     files in these formats: asar, vsix, zip, jar, whl, apk, tgz and other tars, deb, AppImage,
               squashfs, gzip, bzip2, xz, zstd, and archives inside these
  executables  programs and libraries that contain protobuf descriptors (Go, C++, Rust, .NET
               and others) or JavaScript; Java classes, also those of protobuf's lite
               runtime on Android
  generated    source code that protoc generated (_pb2.py, .pb.cc and others)
  descriptors  a descriptor set, or another file that contains protobuf descriptors
  captures     a capture with definitions that 'unwire use' stored, or with recorded calls of
               gRPC server reflection; F.uwc#ID selects a single recorded call
  servers      reflect:URL: extract asks the server at URL by gRPC server reflection
  folders      a folder with such files; extract does not follow symbolic links in it

extract only reads the code, and never runs it. extract unpacks archives in memory, not
to the disk. With reflect:URL, extract sends requests only to servers on this machine.
For other hosts, give --live and --allow-host.

extract recognizes the output of these code generators: ` + strings.Join(bundle.Codegens(), ", ") + `.

Without -o and --descriptor-set, extract only prints a summary, and writes no files. If
the code does not contain the type of a field, extract lists the field with its
location. The written .proto files compile nevertheless: extract declares such a field
as bytes, or as int32 if its type is an enum, because these types have the same wire
format. If extract cannot read a file, it lists the file, continues with the other
files, and at the end exits with status 3. The exit status is also 3 if no INPUT
contains definitions.`,
		Example: `  # Write the .proto files for the definitions in a JavaScript bundle
  unwire schema extract -o proto-new/ app/dist/main.js
  # Search the packages of several programs
  unwire schema extract -o proto-new/ editor.AppImage extension.vsix package.tgz
  # Write a descriptor set, and list the definitions that are incomplete
  unwire schema extract --descriptor-set all.binpb --json app/ | jq .unresolved
  # Ask a running server for its definitions
  unwire schema extract -o proto-new/ reflect:http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema extract: missing argument INPUT"), "usage: "+cmd.UseLine())
			}
			return runExtract(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "folder to which extract writes the .proto files")
	cmd.Flags().StringVar(&f.set, "descriptor-set", "", "file to which extract writes all definitions, and the files that they import, as a FileDescriptorSet")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print a summary of each INPUT as JSON")
	cmd.Flags().BoolVar(&f.Live, "live", false, "allow reflect:URL to send requests to other machines; --allow-host must name each machine")
	cmd.Flags().StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	cmd.Flags().StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	cmd.Flags().StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	return cmd
}

// allowReflection makes gRPC reflection, for inputs reflect:URL, use the hosts and credentials that the
// flags allow.
func (f *extractFlags) allowReflection(a *app.App) error {
	_, policy, err := f.Server()
	if err != nil {
		return err
	}
	o := replay.Options{Policy: policy}
	if err := f.Load(&o); err != nil {
		return err
	}
	o.Pace = &outbound.Pace{}
	a.Reflection.Allow(o.Policy, o.Credentials, nil)
	return nil
}

// readSource extracts the definitions from one input: a program, an archive, a folder, a capture, or
// reflect:URL.
func readSource(ctx context.Context, a *app.App, input string, progress func(extract.Progress)) (*extract.Source, error) {
	form := "capture"
	switch {
	case reflected.Names(input):
		form = "reflection"
	case !app.NamesCapture(input):
		src, err := extract.Read(ctx, input, progress)
		if err != nil {
			err = app.Fail(app.ExitInput, err, "")
		}
		return src, err
	}
	s, err := a.LoadSource(ctx, input)
	if err != nil {
		return nil, err
	}
	src := &extract.Source{Input: input, Forms: []string{form}, Examined: 1}
	for _, file := range s.Files {
		src.Files = append(src.Files, protodesc.ToFileDescriptorProto(file))
	}
	return src, nil
}

// runExtract executes 'unwire schema extract'.
func runExtract(ctx context.Context, a *app.App, f extractFlags, inputs []string) error {
	if err := f.allowReflection(a); err != nil {
		return err
	}
	x := extraction{App: a, extractFlags: f}
	progress, done := schematext.ExtractProgress(a.Err)
	defer done()
	for _, input := range inputs {
		src, err := readSource(ctx, a, input, progress)
		if err != nil {
			return err
		}
		done()

		// An input without any readable file is an error, unlike one without definitions.
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
			"unwire searched for the output of "+strings.Join(bundle.Codegens(), ", ")+",\nand for protobuf descriptors in files of these types: "+formatNames())
	}

	// Another input may declare the type that a reference of one input names, so report only the references that are
	// unresolved after merging.
	set := x.alone
	if len(x.sources) > 1 {
		var err error
		if set, err = extract.Merge(ctx, x.sources...); err != nil {
			return app.Fail(app.ExitInput, err, "")
		}
		for _, u := range set.Unresolved {
			x.reportUnresolved(u)
		}
	}
	if err := writeExtracted(a, set, f); err != nil {
		return err
	}
	return faultsError(x.faults)
}

// An extraction collects the definitions extracted from several inputs.
type extraction struct {
	// App gives access to the output streams and the settings of the program.
	*app.App
	// extractFlags are the values of the command's flags.
	extractFlags

	// sources are the inputs that were read.
	sources []*extract.Source

	// alone has the definitions of the last input only.
	alone *extract.Set

	// lines has the number of definitions for each input.
	lines []contract.SchemaExtraction

	// faults are the internal errors because of which files were skipped.
	faults []*extract.Fault

	// total is the number of elements found in all inputs.
	total int
}

// addSource adds the definitions of one input, and reports its incomplete elements.
func (x *extraction) addSource(ctx context.Context, src *extract.Source) error {
	x.faults = append(x.faults, src.Faults...)
	alone, err := extract.Merge(ctx, src)
	if err != nil {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", src.Input, err), "")
	}
	x.alone = alone
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

// reportUnresolved prints an element whose definition is incomplete. With --json it prints nothing, since
// the JSON output lists these elements.
func (x *extraction) reportUnresolved(u model.Unresolved) {
	if !x.asJSON {
		text := fmt.Sprintf("%s: %s: %s", u.Place, u.Element, u.Reason)
		// The element of a file that was not read is the file.
		if reason, ok := strings.CutPrefix(u.Reason, "not read: "); ok && u.Element == path.Base(u.Place.File) {
			text = fmt.Sprintf("skipped %s: %s", u.Place, reason)
		}
		x.Say("unwire: %s", term.Clean(text))
	}
}

// nothingLookedAt returns an error if an input has no file of a supported type; otherwise nil.
func nothingLookedAt(src *extract.Source) error {
	if src.Examined > 0 {
		return nil
	}
	switch src.Skipped {
	case 0:
		return app.Fail(app.ExitInput, fmt.Errorf("the input %s contains no files", src.Input), "give files, or a folder or archive of files")
	case 1:
		return app.Fail(app.ExitInput, fmt.Errorf("%s: unsupported file type", src.Input), "supported types: "+formatNames()+"; 'unwire schema extract --help' describes them")
	default:
		return app.Fail(app.ExitInput, fmt.Errorf("%s: none of the %d files has a supported type", src.Input, src.Skipped), "supported types: "+formatNames()+"; 'unwire schema extract --help' describes them")
	}
}

// formatNames returns the supported file types, separated by commas.
func formatNames() string { return strings.Join(extract.FormatNames(), ", ") }

// printExtracted prints how many definitions were extracted from each input.
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

// writeExtracted writes the merged definitions as .proto files and as a descriptor set, as the flags ask.
func writeExtracted(a *app.App, set *extract.Set, f extractFlags) error {
	if f.set != "" {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set.DescriptorSet())
		if err != nil {
			return err
		}
		if err := app.WholeFile(f.set, app.ForAll, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return err
		}
		a.Say("wrote %s", f.set)
	}
	if f.out == "" {
		return nil
	}
	return writeFolder(a, f.out, set.Print())
}
