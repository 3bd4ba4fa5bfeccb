package inspect

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/text"
	"unwire/proto"
	"unwire/schema"
)

type decodeFlags struct {
	in, format, schema, typeName string
	as                           []string
	explain                      string
	hex, all, follow, once       bool
}

func decodeCommand(a *app.App) *cobra.Command {
	var f decodeFlags
	cmd := &cobra.Command{
		Use:   "decode [FILE|F.uwc#ID/up/N|-]",
		Short: "Turn bytes into text that can be read, edited and encoded again",
		Long: `decode prints protobuf bytes as text (or JSON), without a schema. Any input is
taken, malformed too: 'unwire decode F | unwire encode' gives F's bytes back.
A frame of a capture is named as F.uwc#7/up/0; any other name is a file of raw
bytes, hex (dumps, arrays and literals of programs, too) or base64 (a data: URL,
too), of one message, of delimited messages or of envelopes, or such a body in gzip
or zstd; - or nothing is stdin.

What a field holds in another form (hex, base64, gzip, JSON, envelopes) stands below
it, in lines that begin with #|. Edit it there, or edit the value: encode makes the
value of what was edited. Names stand in comments: of a capture's frame as its
method's definitions have them, of a file with --type. Of what is cut off or broken
there is the place, what was expected and found, and all that can be read.`,
		Example: `  unwire decode frame.bin > frame.txt
  unwire decode 'F.uwc#2/down/4'
  echo 'CgVoZWxsbw==' | unwire decode
  unwire decode --hex frame.bin
  unwire decode --follow F.uwc#2`,
		Args: app.ArgsBetween(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runDecode(cmd.Context(), a, f, inputArg(args)) },
	}
	cmd.Flags().StringVar(&f.in, "in", "auto", "the input is auto, raw, hex or base64")
	cmd.Flags().StringArrayVar(&f.as, "as", nil, "the bytes are auto, one message, frames (envelopes), or delimited messages (delimited32be, delimited32le: of a capture's connection without HTTP); or a field is read so: 1.2:string, which a capture remembers for the method, until 1.2:auto")
	cmd.Flags().BoolVar(&f.once, "once", false, "with --as 1.2:string: for this once, not remembered in the capture")
	cmd.Flags().StringVar(&f.explain, "explain", "", "why the field at this path, as 1.2, is read as it is: each reading with its evidence")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "the bytes beside the fields, to look at; values are cut")
	cmd.Flags().BoolVar(&f.all, "all", false, "with --hex: every byte of every value")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "a capture's frames while they are recorded, until the exchange has ended")
	cmd.Flags().StringVar(&f.schema, "schema", "", "folder of .proto files for names (default: those that the capture keeps, or the built-in ones; none: no names)")
	cmd.Flags().StringVar(&f.typeName, "type", "", "full name of the message, for names in comments")
	return cmd
}

func inputArg(args []string) string {
	if len(args) == 0 {
		return "-"
	}
	return args[0]
}

func runDecode(ctx context.Context, a *app.App, f decodeFlags, name string) error {
	whole, chosen, err := parseChosenAll(f.as)
	if err != nil {
		return err
	}
	whole = cmp.Or(whole, "auto")
	if err := f.check(whole); err != nil {
		return err
	}
	if f.follow {
		return followDecode(ctx, a, f, query.ParseAddress(name))
	}
	if f.schema != "" && f.typeName == "" && query.ParseAddress(name).Exchange == 0 {
		return app.Usagef("--schema needs --type, the full name of the message")
	}
	if f.explain != "" && f.hex {
		return app.Usagef("--explain goes neither with --hex nor with --follow")
	}
	opts := text.Options{In: f.in}
	if opts.Type, err = f.message(ctx, a); err != nil {
		return err
	}
	src, by, err := openRead(ctx, a, name, f, opts.Type, chosen, whole)
	if err != nil {
		return err
	}
	defer src.Close()
	opts.Done = src.Release
	if src.frame {
		opts.In = "raw"
	}
	opts.As = cmp.Or(src.as, whole)
	opts.Type, opts.Evidence, opts.Choices = by.Type, by.Evidence, by.Choices
	if f.explain != "" || len(chosen) > 0 {
		opts.Done = nil // the data is read twice
	}
	doc, err := text.Decode(src.Data, opts)
	if err != nil {
		return err
	}
	if !src.frame && len(chosen) > 0 { // openRead has checked those of a frame
		if err := checkChoices(a, doc, by.Choices); err != nil {
			return err
		}
	}
	if f.explain != "" {
		return explainDocument(a, doc, by, src.pooled, name, f)
	}
	w := bufio.NewWriterSize(a.Out, 256<<10)
	if err := writeDocument(a, w, doc, f, by); err != nil {
		return err
	}
	return w.Flush()
}

// check checks what the flags mean together; whole is what --as says of the bytes.
func (f decodeFlags) check(whole string) error {
	if err := app.OneOf("--in", f.in, "auto", "raw", "hex", "base64"); err != nil {
		return err
	}
	if err := app.OneOf("--as", whole, append([]string{"auto", "message"}, decode.Splittings()...)...); err != nil {
		return err
	}
	if err := app.OneOf("--format", f.format, "text", "json"); err != nil {
		return err
	}
	if f.hex && f.format != "text" || f.all && !f.hex {
		return app.Usagef("--hex is a format of its own, and --all goes with it")
	}
	return nil
}

// writeDocument writes a document in the form that the flags name.
func writeDocument(a *app.App, w io.Writer, doc *text.Document, f decodeFlags, by decode.View) error {
	switch {
	case f.hex:
		return render.HexDocument(a.Out, w, doc, by, f.all)
	case f.format == "json":
		return doc.JSON(w)
	}
	return doc.Text(w)
}

// message is the descriptor that --schema and --type name, or nil.
func (f decodeFlags) message(ctx context.Context, a *app.App) (protoreflect.MessageDescriptor, error) {
	if f.typeName == "" {
		return nil, nil
	}
	s, err := a.LoadDefinitions(ctx, f.schema)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Message(f.typeName) == nil {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("no message %s in the definitions", f.typeName),
			"names are full: package.Message, as in "+proto.AgentPackage+".AgentClientMessage")
	}
	return s.Message(f.typeName), nil
}

// A decodedInput is what is decoded.
type decodedInput struct {
	*app.Input
	frame  bool   // of a capture
	as     string // what the data is, where that is known
	pooled int    // messages that the evidence is drawn from; 1 without a capture
}

// openRead opens a frame's data if name is the address of a frame, else a file, with
// how its fields are read. Md comes before the definition of a frame's method.
func openRead(ctx context.Context, a *app.App, name string, f decodeFlags, md protoreflect.MessageDescriptor, chosen []query.Choice, whole string) (decodedInput, decode.View, error) {
	addr := query.ParseAddress(name)
	by := decode.View{Type: md}
	if addr.Exchange == 0 {
		if isFixedLength(whole) {
			return decodedInput{}, by, fixedLengthError(whole)
		}
		if f.once {
			return decodedInput{}, by, app.Usagef("--once is for a frame of a capture: of a file nothing is remembered")
		}
		var err error
		if by.Choices, err = plainChoices(chosen); err != nil {
			return decodedInput{}, by, err
		}
		in, err := a.OpenInput(name, app.MaxInput)
		if err == nil && f.in == "auto" && store.HasMagic(in.Data) {
			in.Close()
			return decodedInput{}, by, captureFileError(name)
		}
		return decodedInput{Input: in, pooled: 1}, by, err
	}
	return openFrame(ctx, a, addr, f, md, chosen, whole)
}

// captureFileError refuses the file of a capture, whose bytes are those of a database.
func captureFileError(name string) error {
	return app.Fail(app.ExitUsage, fmt.Errorf("%s is a capture, and decode reads one frame or a file of protobuf", name),
		fmt.Sprintf("name a frame, such as '%s#1/up/0'; 'unwire ls %[1]s' lists the exchanges, 'unwire show %[1]s 1' prints one; --in raw decodes the file's own bytes", term.Clean(name)))
}

// openFrame is openRead for a frame of a capture.
func openFrame(ctx context.Context, a *app.App, addr query.Address, f decodeFlags, md protoreflect.MessageDescriptor, chosen []query.Choice, whole string) (decodedInput, decode.View, error) {
	by := decode.View{Type: md}
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return decodedInput{}, by, err
	}
	defer store.Close()
	rec, err := store.Exchange(ctx, addr.Exchange)
	if err != nil {
		return decodedInput{}, by, err
	}
	switch {
	case rec.Transport != captures.HTTP && slices.Contains(decode.Splittings(), whole):
		store.Splitting = decode.Splitting(whole)
	case isFixedLength(whole):
		return decodedInput{}, by, fixedLengthError(whole)
	}
	ex, err := store.Resolve(ctx, addr.Exchange, addr.Part)
	if err != nil {
		return decodedInput{}, by, err
	}
	frame, err := frameAt(ex.Exchange, addr)
	if err != nil {
		return decodedInput{}, by, err
	}
	var defs *schema.Schema
	if md == nil {
		if defs, err = a.LoadDefinitions(ctx, f.schema, addr.File); err != nil {
			return decodedInput{}, by, err
		}
	}
	v := store.Views(ctx, ex, defs)
	if err := choose(ctx, a, store, ex.Exchange, v, chosen, []decode.Frame{*frame}, f.once); err != nil {
		return decodedInput{}, by, err
	}
	by = v.Of(ex.Call, frame.Dir)
	if md != nil {
		by.Type = md
	}
	src := decodedInput{Input: &app.Input{Data: frame.Data}, frame: true, pooled: v.Messages(frame.Dir)}
	if store.Splitting != "" {
		src.as = "message"
	}
	return src, by, nil
}

// isFixedLength reports a way of delimiting messages that only connections without HTTP
// are read by.
func isFixedLength(as string) bool {
	return as == string(decode.SplitBigEndian) || as == string(decode.SplitLittleEndian)
}

func fixedLengthError(as string) error {
	return app.Usagef("--as %s is for a capture's connections without HTTP, as in F.uwc#7/down/0", as)
}

// checkChoices looks for the fields of choices in a file's messages: a field that none
// of them has is an error, and a choice that fits no value is reported.
func checkChoices(a *app.App, doc *text.Document, choices []kind.Choice) error {
	misfits, err := query.FitDocument(doc, choices)
	for _, m := range misfits {
		a.Say("unwire: --as %s fits no value: %s", m.Choice, term.Clean(m.Why.Error()))
	}
	if _, ok := errors.AsType[*query.ChoiceError](err); ok {
		return choiceError(err)
	}
	return err
}

// explainDocument says why a field of a document's messages is read as it is.
func explainDocument(a *app.App, doc *text.Document, by decode.View, messages int, name string, f decodeFlags) error {
	path, err := fieldpath.ParseNumbers(f.explain)
	if err != nil || len(path) == 0 {
		return app.Usagef("--explain wants a path, as 1.2 or 1.2[0].5, not %q", f.explain)
	}
	found := false
	err = query.ExplainDocument(doc, by, path, messages, func(list []contract.Explanation) error {
		found = true
		return printExplanations(a, a.Out, list, app.InputName(name), f.format == "json")
	})
	if err == nil && !found {
		return app.Fail(app.ExitUsage, fmt.Errorf("--explain %s: no message here has this field", f.explain),
			"paths are field numbers joined by dots, as in 1.2 or 1.2[0].5")
	}
	return err
}

// followDecode prints frames as text while they are recorded.
func followDecode(ctx context.Context, a *app.App, f decodeFlags, addr query.Address) error {
	if addr.Frame >= 0 {
		return app.Usagef("--follow goes with a capture or an exchange of it, not with a frame")
	}
	defs, err := a.LoadDefinitions(ctx, f.schema, addr.File)
	if err != nil {
		return err
	}
	md, err := f.message(ctx, a)
	if err != nil {
		return err
	}
	whole, chosen, err := parseChosenAll(f.as)
	if err != nil {
		return err
	}
	var split decode.Splitting
	if slices.Contains(decode.Splittings(), whole) {
		split = decode.Splitting(whole)
	}
	seen := followedViews{defs: defs, chosen: chosen, by: map[string]*query.Views{}}
	w := bufio.NewWriter(a.Out)
	return seen.watch(ctx, a, addr, decode.Watcher{
		Split: split,
		Frame: func(ex *captures.Exchange, call decode.Call, fr *decode.Frame) error {
			at := query.Address{File: addr.File, Exchange: ex.ID, Dir: fr.Dir, Frame: fr.Seq}
			if f.format != "json" {
				fmt.Fprintf(w, "# %s  %.1f ms, %d bytes\n", term.Clean(at.String()), app.Millis(fr.T), len(fr.Raw))
			}
			by := seen.of(ctx, ex, call).Of(call, fr.Dir)
			if md != nil {
				by.Type = md
			}
			as := whole
			if split != "" && ex.Transport != captures.HTTP && fr.Tree != nil {
				as = "message"
			}
			doc, err := text.Decode(fr.Data, text.Options{In: "raw", As: as, Type: by.Type, Choices: by.Choices})
			if err != nil {
				return err
			}
			if err := writeDocument(a, w, doc, f, by); err != nil {
				return err
			}
			return w.Flush()
		},
	})
}
