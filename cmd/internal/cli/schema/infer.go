package schemacmd

import (
	"cmp"
	"context"
	"errors"
	"io"
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
)

type inferFlags struct {
	raw                      bool
	pkg, root, out, evidence string
	into, as                 string
}

func inferCommand(a *app.App) *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer INPUT…",
		Short: "Write the .proto that the traffic must have",
		Long: `infer reads captures and writes the definitions that explain every message in
them: one file a package, as the methods' paths name it. With --raw each INPUT
is a file that holds one serialized message, all of one type; @LIST reads the
names of the files from LIST, one a line.

What cannot be known is not claimed: a field without a name is field_N, and the
comment of each field says how often it was seen and how sure its type is.

Messages of WebSockets are grouped by URL, direction and what tells their kinds apart: a
member such as "type" in JSON, an enum in field 1 in protobuf; each group is a message.
So are those of connections without HTTP where --as says how they divide.

--evidence writes how sure each field is, and the evidence itself: an INPUT can
be such a file, of another day or machine, and 'schema merge-evidence' makes one
of many. --into writes what the traffic adds to definitions that exist, as JSON
Lines, instead of a .proto. An interrupt ends the reading; what was read is written.
So is what is there of a damaged capture, which is then the error, with code 3.`,
		Example: `  unwire schema infer -o inferred/ F.uwc
  unwire schema infer --evidence all.json -o all.proto --package demo.v1 monday.json F.uwc
  unwire schema infer --into proto/ F.uwc
  unwire schema infer --raw --package demo.v1 --root Event -o event.proto @files.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema infer: missing argument INPUT"), "usage: "+cmd.UseLine())
			}
			return runInfer(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().BoolVar(&f.raw, "raw", false, "inputs are files of one serialized message each")
	cmd.Flags().StringVar(&f.pkg, "package", "", "package of everything inferred (default: the methods' own)")
	cmd.Flags().StringVar(&f.root, "root", "", "name of the root message of --raw (default Root)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file that ends in .proto, or folder, as in x/ (default: stdout)")
	cmd.Flags().StringVar(&f.evidence, "evidence", "", "JSON file for how sure each field is, and for the evidence; - is stdout, without the .proto")
	app.SplittingFlag(cmd.Flags(), &f.as)
	cmd.Flags().StringVar(&f.into, "into", "", "definitions: write what is not in them, as JSON Lines")
	return cmd
}

// defaultRoot is the root message of --raw where it is given no name.
const defaultRoot = "Root"

func runInfer(ctx context.Context, a *app.App, f inferFlags, inputs []string) error {
	inputs, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	root := cmp.Or(f.root, defaultRoot)
	if !protoreflect.Name(root).IsValid() {
		return app.Usagef("--root %s: no message can have that name", root)
	}
	if f.evidence == "-" && f.out == "-" {
		return app.Usagef("--evidence - and -o - both write to stdout: give one of them a file")
	}
	if f.into != "" {
		return inferInto(ctx, a, f, inputs)
	}
	if err := checkDefinitionsOutput(f.out); err != nil {
		return err
	}
	g := newInferInputs(a, root, f.raw)
	g.named = f.root != ""
	if g.inference.Messages.Split, err = app.ParseSplitting(f.as); err != nil {
		return err
	}
	reading := g.gather(ctx, inputs)
	if err := orInterrupted(ctx, a, reading); err != nil {
		return err
	}
	opts := infer.Options{Package: f.pkg, Profile: a.Profile()}
	if f.root != "" && !f.raw {
		opts.Root = f.root
	}
	in, err := infer.Infer(g.inference.Evidence, opts)
	if err != nil {
		return err
	}
	if err := messages.Write(in, g.inference.Evidence, f.pkg); err != nil {
		return err
	}
	if len(in.Files) == 0 || reading != nil && len(g.inference.Evidence.Roots()) == 0 {
		return cmp.Or(reading, g.nothingInferred())
	}
	if err := writeEvidence(a, in, f.evidence); err != nil {
		return err
	}
	g.reportJSONCalls()
	g.reportMessages()
	reportLeftOut(a, in)
	reportMixtures(a, in, f.raw)
	if f.evidence != "-" || f.out != "" {
		err = writeInferred(a, in, f.out)
	}
	return cmp.Or(err, reading)
}

// writeEvidence writes how sure each field is to a file, or to stdout for "-".
func writeEvidence(a *app.App, in *infer.Inferred, name string) error {
	if name == "" {
		return nil
	}
	return writeResult(a, name, app.ForAll, in.WriteEvidence)
}

// reportLeftOut reports what the inference left out at its limits.
func reportLeftOut(a *app.App, in *infer.Inferred) {
	if in.Truncated {
		a.Say("unwire: some fields were left out: there were too many")
	}
	if in.Deep {
		a.Say("unwire: messages more than %d levels down were not looked into", kind.MaxDepth)
	}
}

// maxMixtures is how many messages that seem to be of several types are reported.
const maxMixtures = 10

// reportMixtures reports which messages seem to be of more than one type, where that is
// more likely than not; the definitions say it of the others too.
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
		a.Say("unwire: %s more like that: see the comments", app.Counted(int64(said-maxMixtures), "message"))
	}
	if said > 0 && !raw {
		a.Say("unwire: hint: 'unwire grep --path N F.uwc' lists the frames that have the field N")
	}
}

// orInterrupted returns err unless what was read until then is to be written all
// the same: after an interrupt, which it reports, and of a damaged capture.
func orInterrupted(ctx context.Context, a *app.App, err error) error {
	if errors.Is(err, captures.ErrDamaged) {
		return nil
	}
	if err == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	a.Say("unwire: interrupted: what was read until now is written")
	return nil
}

// inferInto writes what traffic adds to definitions.
func inferInto(ctx context.Context, a *app.App, f inferFlags, inputs []string) error {
	if f.evidence != "" || f.pkg != "" || f.root != "" || f.raw {
		return app.Usagef("--into is for captures: it goes with none of --raw, --package, --root and --evidence")
	}
	if f.into == app.NoDefinitions {
		return app.Usagef("--into none: there is nothing to add to")
	}
	defs, err := a.LoadDefinitions(ctx, f.into)
	if err != nil {
		return err
	}
	coverage := query.NewCoverage(defs, a.Profile())
	reading := coverInputs(ctx, a, coverage, inputs)
	if err := orInterrupted(ctx, a, reading); err != nil {
		return err
	}
	list, err := coverage.Proposals()
	if err != nil {
		return err
	}
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
	a.Say("%s that the definitions have not", app.Counted(len(list), "field"))
	return reading
}

// coverInputs adds captures to a coverage.
func coverInputs(ctx context.Context, a *app.App, coverage *query.Coverage, inputs []string) error {
	defer app.CollectLess(app.InferMemory)()
	for _, name := range inputs {
		ev, err := readEvidenceFile(name)
		if err != nil {
			return err
		}
		if ev != nil {
			return app.Usagef("--into needs the traffic itself: %s is evidence", name)
		}
	}
	return gatherCaptures(a, inputs, func(name string, c *query.Capture, at query.Address) error {
		before := coverage.Exchanges
		err := coverage.Add(ctx, c, at, a.Remark)
		if err == nil && coverage.Exchanges == before {
			a.Say("unwire: warning: %s holds no exchanges", term.Clean(name))
		}
		return err
	})
}

// expandLists replaces @LIST by the file names in it; @- is stdin.
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

// writeInferred writes the definitions to a file, a folder, or stdout.
func writeInferred(a *app.App, in *infer.Inferred, out string) error {
	switch {
	case out == "" || out == "-":
		return schematext.Inferred(a.Out, in)
	case strings.HasSuffix(out, ".proto"):
		text, err := in.Text()
		if err != nil {
			return app.Fail(app.ExitUsage, err, "give a folder to -o, or put all into one package with --package P")
		}
		return app.WholeFile(out, app.ForAll, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	return writeFolder(a, out, in.Files)
}
