package schemacmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/decode/kind"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
	"unwire/schema/infer/naming"
)

// inferFlags are the values of the flags of 'unwire schema infer'.
type inferFlags struct {
	// raw means that each input file is one message.
	raw bool

	// pkg is the package of all inferred definitions; "" for the packages of the methods.
	pkg string

	// root is the name of the message type with --raw; "" for the default.
	root string

	// out is the .proto file or folder to write; "" for stdout.
	out string

	// evidence is the file to which the evidence is written; "" for none.
	evidence string

	// into names definitions for which missing fields are proposed; "" for none.
	into string

	// as is the framing of connections without HTTP; "" to detect it.
	as string

	// proto names definitions from which field names are copied; "" for the default.
	proto string

	// json prints JSON.
	json bool

	// verbose adds the evidence for each field as comments.
	verbose bool

	// numbered does not suggest names for fields.
	numbered bool

	// objects are the options for object stores.
	objects app.ObjectStore
}

const inferExamples = `  # Write .proto files that describe the messages in a capture
  unwire schema infer -o inferred/ F.uwc
  # Combine a capture with the evidence of another day in a new evidence file
  unwire schema infer --evidence all.json -o all.proto --package demo.v1 monday.json F.uwc
  # Infer definitions from evidence files in an S3 bucket
  unwire schema infer -o all/ --live --allow-host s3.eu-west-1.amazonaws.com 's3://bucket/results/evidence/*.pb'
  # Print the recorded fields that your .proto files lack
  unwire schema infer --into proto/ F.uwc
  # Infer the type Event from files that each contain one message
  unwire schema infer --raw --package demo.v1 --root Event -o event.proto @files.txt`

// inferCommand returns the command 'unwire schema infer', which infers definitions from captured traffic.
func inferCommand(a *app.App) *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer INPUT…",
		Short: "Infer .proto files from traffic",
		Long: `infer reads captures (files with recorded traffic), and writes .proto definitions
that describe all messages in them. infer writes one file for each protobuf package; the
names of packages come from the URLs of the calls. With --raw, each INPUT is not a
capture, but a file with one serialized message, and all messages have the same type. An
INPUT @LIST means all files whose names are in the file LIST, one on each line.

infer names a field after its number: field_7 is the field 7. If the values suggest a name, infer uses this name instead,
such as url, and marks it with a comment; with --numbered, infer does not suggest names.
The comment of a field says how often the field occurred. If several types are possible,
the comment lists them. With --verbose, the comment also contains the probability of the
inferred type.

A WebSocket can carry messages of different types. infer defines one message type for
all messages with the same URL, the same direction and the same discriminator. The
discriminator is a member such as "type" in JSON messages, and an enum in field 1 in
protobuf messages. infer does the same for connections without HTTP; for these, --as
must say how the bytes are divided into messages.

With --evidence FILE, infer writes an evidence file: statistics about the values of each
field, and the probability of its type, as JSON. If the name of FILE ends with .pb,
infer writes only the statistics, in a compact binary form. An INPUT can also be an
evidence file, for example from another day or another machine, or files in an object
store, such as s3://BUCKET/evidence/*.pb. infer then uses the statistics of all inputs
together. 'unwire schema merge-evidence' combines several evidence files in one file.

With --into DEFINITIONS, infer writes no .proto files. Instead it prints the fields that
these existing definitions lack, as one JSON object per line. If you interrupt infer, or
if a capture is damaged, infer writes the result for the data that it has read. If a
capture is damaged, the exit status is 3.`,
		Example: inferExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema infer: missing argument INPUT"), "usage: "+cmd.UseLine())
			}
			return runInfer(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().BoolVar(&f.raw, "raw", false, "each INPUT is not a capture, but a file with one serialized message")
	cmd.Flags().StringVar(&f.pkg, "package", "", "name of the protobuf package for all inferred definitions (default: the packages in the URLs of the calls)")
	cmd.Flags().StringVar(&f.root, "root", "", "with --raw: name that infer gives to the type of the messages (default Root)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "write the definitions to this .proto file, or to .proto files in this folder, such as x/ (default: stdout)")
	cmd.Flags().StringVar(&f.evidence, "evidence", "", "write the statistics about each field, and the probability of its type, to this JSON file; if the name ends with .pb, write only the statistics, in a compact binary form; - prints the JSON on stdout instead of the .proto files")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "write to the comment of every field how often the field occurred, the probability of its type, and the other possible types")
	cmd.Flags().BoolVar(&f.numbered, "numbered", false, "call all fields field_1, field_2 and so on, also if their values suggest a name")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each .proto file; it contains the text of the file, or with -o the path")
	app.SplittingFlag(cmd.Flags(), &f.as)
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, from which infer takes the names of fields; with the word none, infer uses no names from definitions (default: the first that exists of UNWIRE_PROTO, the definitions in the capture, and unwire.yaml)")
	f.objects.AddTo(cmd.Flags(), false)
	cmd.Flags().StringVar(&f.into, "into", "", "print only the fields that these definitions lack, as one JSON object per line")
	return cmd
}

// defaultRoot is the name of the root message in definitions inferred from raw messages (--raw), unless
// --root names it.
const defaultRoot = "Root"

// runInfer executes 'unwire schema infer'. inputs are captures, evidence files or, with --raw, files of
// one message.
func runInfer(ctx context.Context, a *app.App, f inferFlags, inputs []string) error {
	inputs, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	if inputs, err = expandPatterns(ctx, &f.objects, inputs); err != nil {
		return err
	}
	root := cmp.Or(f.root, defaultRoot)
	if !protoreflect.Name(root).IsValid() {
		return app.Usagef("--root must be a message name, not %s", root)
	}
	if err := f.checkStdout(); err != nil {
		return err
	}
	if f.into != "" {
		return inferInto(ctx, a, f, inputs)
	}
	if err := checkDefinitionsOutput(f.out); err != nil {
		return err
	}

	// Read the evidence of all inputs, until the end or an interrupt.
	g := newInferInputs(a, root, f.raw)
	g.named, g.objects = f.root != "", &f.objects
	if g.inference.Messages.Split, err = app.ParseSplitting(f.as); err != nil {
		return err
	}
	reading := g.gather(ctx, inputs)
	if err := orInterrupted(ctx, reading); err != nil {
		return err
	}
	interrupted := reading != nil && ctx.Err() != nil
	// The result is the same as from the captures themselves.
	g.inference.Evidence.DropParts()

	in, err := inferAll(ctx, a, g, f, localInputs(inputs), interrupted)
	if err != nil {
		return err
	}
	if len(in.Files) == 0 || reading != nil && len(g.inference.Evidence.Roots()) == 0 {
		if interrupted {
			return app.Fail(app.ExitInterrupted, errors.New("interrupted before a message was read, so nothing was written"), "")
		}
		return cmp.Or(reading, g.nothingInferred())
	}
	if err := writeEvidence(a, in, f.evidence); err != nil {
		return err
	}
	g.reportJSONCalls()
	g.reportMessages()
	err = reportInferred(a, in, f)
	if interrupted && err == nil {
		return app.Fail(app.ExitInterrupted, errors.New("interrupted: the result was written, but it covers only the data that was read before"), "")
	}
	return cmp.Or(err, reading)
}

// inferAll infers definitions from the evidence of g, and names their fields. captures are the inputs that may store
// definitions with names.
func inferAll(ctx context.Context, a *app.App, g *inferInputs, f inferFlags, captures []string, interrupted bool) (*infer.Inferred, error) {
	// Infer calls first, then messages of WebSockets, and then take names from definitions.
	opts := infer.Options{Package: f.pkg, Profile: a.Profile(), Verbose: f.verbose}
	if f.root != "" && !f.raw {
		opts.Root = f.root
	}
	in, err := infer.Infer(g.inference.Evidence, opts)
	if err != nil {
		return nil, err
	}
	if err := messages.Write(in, g.inference.Evidence, f.pkg); err != nil {
		return nil, err
	}

	// After an interrupt, the result must be written at once, without the names of definitions.
	if !interrupted {
		if err := nameFields(ctx, a, in, f, captures); err != nil {
			return nil, err
		}
	}
	if !f.numbered {
		naming.Suggest(in)
	}
	return in, nil
}

// reportInferred prints warnings about the inferred definitions to stderr, and then writes the
// definitions.
func reportInferred(a *app.App, in *infer.Inferred, f inferFlags) error {
	reportLeftOut(a, in)
	reportMixtures(a, in, f.raw)
	if f.evidence == "-" && f.out == "" {
		return nil
	}
	return writeInferred(a, in, f.out, f.json)
}

// nameFields copies field names to the inferred definitions from definitions that the user has named or
// stored. The built-in definitions are not used, because the inferred ones are compared with them.
func nameFields(ctx context.Context, a *app.App, in *infer.Inferred, f inferFlags, inputs []string) error {
	known, err := a.Remembered(ctx, f.proto, inputs...)
	if known == nil || err != nil || len(in.Files) == 0 {
		return err
	}
	if n := naming.Fields(in, known); n > 0 {
		a.Say("unwire: took the names of %s from your definitions (--proto, UNWIRE_PROTO, the capture or unwire.yaml); --proto none turns this off", app.Counted(n, "field"))
	}
	return nil
}

// checkStdout returns an error if two flags would both write to stdout.
func (f *inferFlags) checkStdout() error {
	switch {
	case f.evidence == "-" && f.out == "-":
		return app.Usagef("--evidence - and -o - both write to stdout: write one of them to a file")
	case f.evidence == "-" && f.json:
		return app.Usagef("--evidence - and --json both write to stdout: name a file with --evidence")
	}
	return nil
}

// writeEvidence writes the evidence file, which has the types and probabilities of all inferred fields,
// to name; "-" is stdout, "" writes nothing.
func writeEvidence(a *app.App, in *infer.Inferred, name string) error {
	if name == "" {
		return nil
	}
	return writeResult(a, name, app.ForAll, evidenceWriter(in, name))
}

// evidenceWriter returns a function that writes the evidence in the format that the extension of name
// selects.
func evidenceWriter(in *infer.Inferred, name string) func(io.Writer) error {
	if strings.EqualFold(filepath.Ext(name), ".pb") {
		return in.WriteBinary
	}
	return in.WriteEvidence
}

// reportLeftOut prints the data that the inference ignored because of its limits.
func reportLeftOut(a *app.App, in *infer.Inferred) {
	if in.Truncated {
		a.Say("unwire: the messages have too many fields, so the output lacks some of them")
	}
	if in.Deep {
		a.Say("unwire: the output lacks messages that are nested deeper than %d levels", kind.MaxDepth)
	}
}

// maxMixtures is the largest number of messages that reportMixtures prints.
const maxMixtures = 10

// reportMixtures prints which inferred messages are probably a mixture of several types, if that
// probability is over 50 %. Less probable mixtures are mentioned only in comments of the definitions.
func reportMixtures(a *app.App, in *infer.Inferred, raw bool) {
	said := 0
	for i := range in.Mixtures {
		m := &in.Mixtures[i]
		if m.P <= 0.5 {
			continue
		}
		if said++; said <= maxMixtures {
			a.Say("unwire: %s: %s", m.Message, term.CleanText(m.String()))
		}
	}
	if said > maxMixtures {
		a.Say("unwire: %s more with this problem: comments in the output mark them", app.Counted(int64(said-maxMixtures), "message"))
	}
	if said > 0 && !raw {
		a.Say("unwire: hint: 'unwire grep --path N F.uwc' lists the frames that have the field N")
	}
}

// orInterrupted returns nil if err is an interrupt or the damage of a capture, because the result for the
// data read before is still to be written. It returns any other err unchanged.
func orInterrupted(ctx context.Context, err error) error {
	if errors.Is(err, captures.ErrDamaged) {
		return nil
	}
	if err == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// inferInto executes 'schema infer --into': it prints the fields that the traffic has and the definitions
// lack, as proposals.
func inferInto(ctx context.Context, a *app.App, f inferFlags, inputs []string) error {
	if f.evidence != "" || f.pkg != "" || f.root != "" || f.raw {
		return app.Usagef("--into cannot be used with --raw, --package, --root or --evidence")
	}
	if f.into == app.NoDefinitions {
		return app.Usagef("--into none cannot be used: --into needs definitions")
	}
	defs, err := a.LoadDefinitions(ctx, f.into)
	if err != nil {
		return err

		// Coverage also finds new enum values and types, which a comparison of fields would miss.
	}
	coverage := query.NewCoverage(defs, a.Profile())
	reading := coverInputs(ctx, a, coverage, inputs)
	if err := orInterrupted(ctx, reading); err != nil {
		return err
	}
	list, err := coverage.Proposals()
	if err != nil {
		return err
	}

	// Each line is a field that the definitions lack, so that a review can accept them one by one.
	write := func(w io.Writer) error {
		lines := contract.NewEncoder(w)
		for _, p := range list {
			if err := lines.Encode(&contract.FieldProposal{Proposal: p}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := writeResult(a, f.out, app.ForAll, write); err != nil {
		return err
	}
	a.Say("found %s that the definitions lack", app.Counted(len(list), "field"))
	return reading
}

// coverInputs adds the messages in captures to coverage, which compares them with definitions.
func coverInputs(ctx context.Context, a *app.App, coverage *query.Coverage, inputs []string) error {
	defer app.CollectLess(app.InferMemory)()
	for _, name := range inputs {
		ev, err := readEvidenceFile(name)
		if err != nil {
			return err
		}
		if ev != nil {
			return app.Usagef("--into needs captures, but %s is an evidence file", name)
		}
	}
	return gatherCaptures(a, inputs, func(name string, c *query.Capture, at query.Address) error {
		before := coverage.Exchanges
		err := coverage.Add(ctx, c, at, a.Remark)
		if err == nil && coverage.Exchanges == before {
			a.Say("unwire: warning: %s contains no exchanges", term.Clean(name))
		}
		return err
	})
}

// expandLists replaces each @LIST by the file names in the file LIST; @- reads the names from standard
// input.
func expandLists(a *app.App, inputs []string) ([]string, error) {
	var names []string
	for _, in := range inputs {
		list, ok := strings.CutPrefix(in, "@")
		if !ok {
			names = append(names, in)
			continue
		}
		data, err := a.ReadInput(list)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				names = append(names, line)
			}
		}
	}
	return names, nil
}

// writeInferred writes the inferred definitions to a file, a folder or stdout, as out selects.
func writeInferred(a *app.App, in *infer.Inferred, out string, asJSON bool) error {
	switch {
	case asJSON && (out == "" || out == "-"):
		return printInferred(a, in, "")
	case asJSON:
		if err := writeInferred(a, in, out, false); err != nil {
			return err
		}
		return printInferred(a, in, out)
	case out == "" || out == "-":
		return schematext.Inferred(a.Out, in)
	case strings.HasSuffix(out, ".proto"):
		text, err := in.Text()
		if err != nil {
			return app.Fail(app.ExitUsage, err, "name a folder with -o, or use one package for all definitions with --package P")
		}
		return app.WholeFile(out, app.ForAll, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	return writeFolder(a, out, in.Files)
}
