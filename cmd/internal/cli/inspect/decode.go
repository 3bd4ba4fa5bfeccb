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
	"unwire/cmd/internal/options"
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

// decodeFlags are the values of the flags of 'unwire decode'.
type decodeFlags struct {
	// in is the encoding of the input: auto, raw, hex or base64.
	in string

	// format is the output format: text or json.
	format string

	// proto names definitions; "" for the default.
	proto string

	// typeName is the full name of the message type (--type); "" for none.
	typeName string

	// as are the values of --as: a framing, or types of single fields such as 1.2:string.
	as []string

	// explain is the path of the field whose inferred type is to be explained; "" for none.
	explain string

	// hex prints a hex dump next to the fields.
	hex bool

	// plain prints only what is on the wire.
	plain bool

	// full does not truncate values in the hex dump.
	full bool

	// follow prints frames while they are recorded.
	follow bool

	// once does not store the types of --as.
	once bool

	// json prints JSON.
	json bool
}

// decodeLong is the prose of the help of 'unwire decode'.
const decodeLong = `decode prints protobuf bytes as text or JSON, without a schema. 'unwire encode'
converts the output back to the same bytes, also if the bytes are not valid protobuf.
The input is a message of a capture (F.uwc#7/up/0), a file, or stdin (- or no argument).
A file contains raw bytes, hex or base64. decode also reads the output of hexdump
and xxd, a byte array or a string literal from source code, and a data: URL. The bytes
can be one message, several messages with a length before each, or gRPC frames, which
begin with a 5-byte header. The bytes may be compressed with gzip or zstd.

If the value of a field is itself in another format (hex, base64, gzip, JSON, gRPC
frames), decode also prints the content of the value. The lines with this content are
below the value, and begin with #|. The first of these lines ends with a checksum of the
value. You can edit the value, or the lines with its content; encode then builds the
value from the edited lines. If the input is truncated or malformed, decode reports the
offset and the reason, and decodes the other bytes.

If decode knows the type of the message, it prints the name of each field after the
field's value, in a comment that begins with #. For a message of a capture, decode finds
the type in the .proto definition of the method. For a file, give the name of the type
with --type.

--plain is several times faster, because decode then does not infer types. decode prints
no comments about possible types, and no content of values in other formats. decode
prints a length-delimited value as text if all its characters are printable. If the
value is not such a text, decode prints it as a message if it consists of valid fields,
and otherwise as hex.

With --as 1.2:string, decode reads field 1.2 as a string instead of inferring its type.
If the input is a message of a capture, decode stores this choice in the capture, for
all messages of the same method and direction. With --once, decode does not store the
choice. --as 1.2:auto deletes the stored choice for field 1.2. Use --as delimited32be or
delimited32le only for captured connections without HTTP, in which a length of 4 bytes
precedes each message.`

// decodeCommand returns the command 'unwire decode'.
func decodeCommand(a *app.App) *cobra.Command {
	var f decodeFlags
	cmd := &cobra.Command{
		Use:   "decode [FILE|FRAME|-]",
		Short: "Decode bytes to text, which 'unwire encode' can turn back into bytes",
		Long:  decodeLong,
		Example: `  # Decode a file to text that you can edit
  unwire decode frame.bin > frame.txt
  # Decode the fifth message of the server in exchange 2
  unwire decode 'F.uwc#2/down/4'
  # Decode base64 from stdin
  echo 'CgVoZWxsbw==' | unwire decode
  # Also print the bytes of each field
  unwire decode --hex frame.bin
  # Decode messages while the exchange is being recorded
  unwire decode --follow F.uwc#2`,
		Args: app.ArgsBetween(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.json {
				f.format = "json"
			}
			return runDecode(cmd.Context(), a, f, inputArg(args))
		},
	}
	cmd.Flags().StringVar(&f.in, "in", "auto", "encoding of the input: auto (decode detects it), raw, hex or base64")
	cmd.Flags().StringArrayVar(&f.as, "as", nil, "how the input is divided into messages: message (the input is one message), frames (gRPC's 5-byte header precedes each message), delimited (a varint with the length precedes each message), delimited32be or delimited32le (a length of 4 bytes precedes each message), or auto (decode detects it); or PATH:TYPE, such as 1.2:string, to read a field as this type")
	cmd.Flags().BoolVar(&f.once, "once", false, "use the type in --as PATH:TYPE only for this output, and do not store it in the capture")
	cmd.Flags().StringVar(&f.explain, "explain", "", "explain how decode inferred the type of this field, such as 1.2: list all possible types, and the observations for and against each type")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "also print the bytes of each field, in hex; decode truncates long values")
	cmd.Flags().BoolVar(&f.plain, "plain", false, "do not infer types: print only field numbers, wire types and values; this is much faster for large files")
	cmd.Flags().BoolVar(&f.full, "full", false, "with --hex: do not truncate long values")
	options.Alias(cmd.Flags(), "all", "full")
	cmd.Flags().StringVar(&f.format, "format", "text", "output format: text or json")
	cmd.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "print each message of an exchange when it is recorded, until the exchange ends")
	cmd.Flags().StringVar(&f.proto, "proto", "", protoUsage)
	cmd.Flags().StringVar(&f.typeName, "type", "", "full name of the message type, such as pkg.Message; decode then also prints the name of each field, in a comment that begins with #")
	return cmd
}

// inputArg returns the optional argument that names the input; "-", for standard input, if it is missing.
func inputArg(args []string) string {
	if len(args) == 0 {
		return "-"
	}
	return args[0]
}

// runDecode executes 'unwire decode' for the input name: a file, the address of a frame, or "-".
func runDecode(ctx context.Context, a *app.App, f decodeFlags, name string) error {
	whole, chosen, err := parseChosenAll(f.as)
	if err != nil {
		return err
	}

	// The words of --as select either a framing or types of single fields.
	whole = cmp.Or(whole, "auto")
	if err := f.check(whole, len(chosen) > 0); err != nil {
		return err
	}
	if f.follow {
		return followDecode(ctx, a, f, query.ParseAddress(name))
	}

	// A file has no method, so that only --type can connect its bytes with a definition.
	if f.proto != "" && f.typeName == "" && query.ParseAddress(name).Exchange == 0 {
		return app.Usagef("--proto needs --type, the full name of the message")
	}
	if f.explain != "" && f.hex {
		return app.Usagef("--explain cannot be used with --hex or --follow")
	}
	opts := text.Options{In: f.in, Plain: f.plain}
	if opts.Type, err = f.message(ctx, a); err != nil {
		return err
	}

	// The framing that openRead detects takes precedence over the flag.
	src, by, err := openRead(ctx, a, name, f, opts.Type, chosen, whole)
	if err != nil {
		return err
	}

	// Large inputs are mapped into memory; pages are released once they were printed.
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

	// A choice that fits no value of the field is an error here, since the user sees only this input.
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

// check returns an error for invalid values or combinations of flags. framing is the value of --as that
// selects the framing of the bytes, and chosen means that it also selects types of fields.
func (f decodeFlags) check(framing string, chosen bool) error {
	if err := app.OneOf("--in", f.in, "auto", "raw", "hex", "base64"); err != nil {
		return err
	}
	if err := app.OneOf("--as", framing, append([]string{"auto", "message"}, decode.Splittings()...)...); err != nil {
		return err
	}
	if err := app.OneOf("--format", f.format, "text", "json"); err != nil {
		return err
	}
	if f.plain && (chosen || f.hex || f.format != "text" || f.explain != "" || f.follow) {
		return app.Usagef("--plain cannot be used with --as PATH:TYPE, --hex, --json, --format json, --explain or --follow")
	}
	if f.hex && f.format != "text" {
		return app.Usagef("--hex cannot be used with --json or --format json")
	}
	if f.full && !f.hex {
		return app.Usagef("--full requires --hex")
	}
	return nil
}

// writeDocument prints the decoded messages of an input as text, as JSON or as a hex dump, as the flags
// select.
func writeDocument(a *app.App, w io.Writer, doc *text.Document, f decodeFlags, by decode.View) error {
	switch {
	case f.hex:
		return render.HexDocument(a.Out, w, doc, by, f.full)
	case f.format == "json":
		return doc.JSON(w)
	}
	return doc.Text(w)
}

// message returns the message type that --type names, from the definitions that --proto names; nil
// without --type.
func (f decodeFlags) message(ctx context.Context, a *app.App) (protoreflect.MessageDescriptor, error) {
	if f.typeName == "" {
		return nil, nil
	}
	s, err := a.LoadDefinitions(ctx, f.proto)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Message(f.typeName) == nil {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("the definitions contain no message %s", f.typeName),
			"give the full name, package.Message, such as "+proto.AgentPackage+".AgentClientMessage")
	}
	return s.Message(f.typeName), nil
}

// A decodedInput is the input of 'unwire decode': the bytes, and how they must be decoded.
type decodedInput struct {
	// Input has the bytes.
	*app.Input

	// frame is true if the bytes are a frame of a capture, and not a file.
	frame bool

	// as is the framing of the bytes, if it is known without the flag --as; otherwise "".
	as string

	// pooled is the number of messages from which the evidence for the types of fields was collected; 1
	// for a file.
	pooled int
}

// openRead opens the input of decode, and returns with it the settings for decoding its fields: a frame's
// data if name is the address of a frame, and otherwise a file. chosen are the field types that the user
// chose. md is the type that --type names; if it is nil, a frame has the type in the definition of its
// method.
func openRead(ctx context.Context, a *app.App, name string, f decodeFlags, md protoreflect.MessageDescriptor, chosen []query.Choice, whole string) (decodedInput, decode.View, error) {
	addr := query.ParseAddress(name)
	by := decode.View{Type: md}
	if addr.Exchange == 0 {
		if isFixedLength(whole) {
			return decodedInput{}, by, fixedLengthError(whole)
		}
		if f.once {
			return decodedInput{}, by, app.Usagef("--once can be used only for a message of a capture: for a file, decode stores no types")
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

// captureFileError returns an error for a capture file, whose bytes are a SQLite database and cannot be
// decoded as a message.
func captureFileError(name string) error {
	return app.Fail(app.ExitUsage, fmt.Errorf("%s is a capture, but decode needs a frame of it, or a file with protobuf", name),
		fmt.Sprintf("name a frame, such as '%s#1/up/0'; 'unwire ls %[1]s' lists the exchanges, and 'unwire show %[1]s 1' prints one; --in raw decodes the bytes of the capture file itself", term.Clean(name)))
}

// openFrame returns the data of the captured frame at an address, and the settings for decoding its fields. md is the
// type that --type names, or nil; chosen are the field types that the user chose.
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

	// --as splits only connections without HTTP; in HTTP the protocol determines the frames.
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

	// The type comes from --type, or from the definitions by the frame's method.
	var defs *schema.Schema
	if md == nil {
		if defs, err = a.LoadDefinitions(ctx, f.proto, addr.File); err != nil {
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

// isFixedLength reports whether as, a value of --as, is a framing with a fixed-size length prefix, which
// is supported only for connections without HTTP.
func isFixedLength(as string) bool {
	return as == string(decode.SplitBigEndian) || as == string(decode.SplitLittleEndian)
}

// fixedLengthError returns the usage error for such a framing with other inputs.
func fixedLengthError(as string) error {
	return app.Usagef("--as %s can be used only for recorded connections without HTTP, such as F.uwc#7/down/0", as)
}

// checkChoices checks the field types that the user chose for a file: it is an error if no message has
// the field. If no value of the field can be read as the chosen type, it prints a remark.
func checkChoices(a *app.App, doc *text.Document, choices []kind.Choice) error {
	misfits, err := query.FitDocument(doc, choices)
	for _, m := range misfits {
		a.Say("unwire: --as %s: no value can be read as this type: %s", m.Choice, term.Clean(app.PlainText(m.Why)))
	}
	if _, ok := errors.AsType[*query.ChoiceError](err); ok {
		return choiceError(err)
	}
	return err
}

// explainDocument executes --explain for a file: it prints the evidence for the inferred type of a field.
// messages is the number of messages from which the evidence was collected, and name the name of the
// input.
func explainDocument(a *app.App, doc *text.Document, by decode.View, messages int, name string, f decodeFlags) error {
	path, err := fieldpath.ParseNumbers(f.explain)
	if err != nil || len(path) == 0 {
		return app.Usagef("--explain must be a path, such as 1.2 or 1.2[0].5, not %q", f.explain)
	}
	found := false
	err = query.ExplainDocument(doc, by, path, messages, func(list []contract.Explanation) error {
		found = true
		return printExplanations(a, a.Out, list, app.InputName(name), f.format == "json")
	})
	if err == nil && !found {
		return app.Fail(app.ExitUsage, fmt.Errorf("--explain %s: no message in the input has this field", f.explain),
			"a path is field numbers joined by dots, such as 1.2 or 1.2[0].5")
	}
	return err
}

// followDecode executes 'unwire decode --follow': it prints the frames of a capture or exchange as text
// while they are recorded.
func followDecode(ctx context.Context, a *app.App, f decodeFlags, addr query.Address) error {
	if addr.Frame >= 0 {
		return app.Usagef("--follow requires a capture or an exchange, not a frame")
	}
	defs, err := a.LoadDefinitions(ctx, f.proto, addr.File)
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

	// The framing of --as applies to connections without HTTP.
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
				fmt.Fprintf(w, "# %s  %.1f ms, %s\n", term.Clean(at.String()), app.Millis(fr.T), app.Counted(len(fr.Raw), "byte"))
			}
			by := seen.of(ctx, ex, call).Of(call, fr.Dir)
			if md != nil {
				by.Type = md
			}
			as := whole
			// A split frame is a single message.
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
