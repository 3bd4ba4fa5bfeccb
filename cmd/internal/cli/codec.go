package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/text"
)

type decodeFlags struct {
	in, as, format, schema, typeName string
	hex, all, follow                 bool
}

func (a *app) decodeCommand() *cobra.Command {
	var f decodeFlags
	cmd := &cobra.Command{
		Use:   "decode [FILE|F.uwc#ID/up/N|-]",
		Short: "Turn bytes into text that can be read, edited and encoded again",
		Long: `decode prints protobuf bytes as text (or JSON), without a schema. Any input is
taken, malformed too: 'unwire decode F | unwire encode' gives F's bytes back.
A frame of a capture is named as F.uwc#7/up/0; any other name is a file of raw
bytes, hex (a dump too) or base64 (a data: URL too), of one message, of delimited
messages or of envelopes, or such a body in gzip or zstd; - or nothing is stdin.
What a field holds in another form (hex, base64, gzip, JSON, envelopes) stands
below it, in comments: the field itself is what is written back. Names stand in comments: of a
capture's frame as its method's definitions have them, of a file with --type.`,
		Example: `  unwire decode frame.bin > frame.txt
  unwire decode 'F.uwc#2/down/4'
  echo 'CgVoZWxsbw==' | unwire decode
  unwire decode --hex frame.bin
  unwire decode --follow F.uwc#2`,
		Args: argsBetween(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.decode(cmd.Context(), f, inputArg(args)) },
	}
	cmd.Flags().StringVar(&f.in, "in", "auto", "the input is auto, raw, hex or base64")
	cmd.Flags().StringVar(&f.as, "as", "auto", "the bytes are auto, one message, frames (envelopes), or delimited messages")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "the bytes beside the fields, to look at; values are cut")
	cmd.Flags().BoolVar(&f.all, "all", false, "with --hex: every byte of every value")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "a capture's frames while they are recorded, until the exchange has ended")
	cmd.Flags().StringVar(&f.schema, "schema", "", "folder of .proto files for names (default: the built-in ones; none: no names)")
	cmd.Flags().StringVar(&f.typeName, "type", "", "full name of the message, for names in comments")
	return cmd
}

func inputArg(args []string) string {
	if len(args) == 0 {
		return "-"
	}
	return args[0]
}

func (a *app) decode(ctx context.Context, f decodeFlags, name string) error {
	opts := text.Options{In: f.in, As: f.as}
	if err := oneOf("--in", f.in, "auto", "raw", "hex", "base64"); err != nil {
		return err
	}
	if err := oneOf("--as", f.as, "auto", "message", "frames", "delimited"); err != nil {
		return err
	}
	if err := oneOf("--format", f.format, "text", "json"); err != nil {
		return err
	}
	if f.hex && f.format != "text" || f.all && !f.hex {
		return usagef("--hex is a format of its own, and --all goes with it")
	}
	if f.follow {
		return a.followDecode(ctx, f, parseAddress(name))
	}
	if f.schema != "" && f.typeName == "" && parseAddress(name).Exchange == 0 {
		return usagef("--schema needs --type, the full name of the message")
	}
	var err error
	if opts.Type, err = f.message(); err != nil {
		return err
	}
	src, ex, err := a.openBytes(ctx, name)
	if err != nil {
		return err
	}
	defer src.Close()
	opts.Done = src.Release
	if ex != nil {
		opts.In = "raw"
		if opts.Type == nil {
			defs, err := loadDefinitions(f.schema)
			if err != nil {
				return err
			}
			opts.Type = frameType(defs, ex.Call, parseAddress(name).Dir)
		}
	}
	doc, err := text.Decode(src.Data, opts)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(a.out, 256<<10)
	if err := a.writeDocument(w, doc, f, opts.Type); err != nil {
		return err
	}
	return w.Flush()
}

// writeDocument writes a document in the form that the flags name.
func (a *app) writeDocument(w io.Writer, doc *text.Document, f decodeFlags, md protoreflect.MessageDescriptor) error {
	switch {
	case f.hex:
		return a.hexDocument(w, doc, md, f.all)
	case f.format == "json":
		return doc.JSON(w)
	}
	return doc.Text(w)
}

// message is the descriptor that --schema and --type name, or nil.
func (f decodeFlags) message() (protoreflect.MessageDescriptor, error) {
	if f.typeName == "" {
		return nil, nil
	}
	s, err := loadDefinitions(f.schema)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Message(f.typeName) == nil {
		return nil, fail(exitUsage, fmt.Errorf("no message %s in the definitions", f.typeName),
			"names are full: package.Message, as in agent.v1.AgentClientMessage")
	}
	return s.Message(f.typeName), nil
}

func (a *app) encodeCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:     "encode [FILE|-]",
		Short:   "Turn decode's text or JSON back into bytes",
		Example: "  unwire decode frame.bin > frame.txt\n  unwire encode frame.txt > edited.bin",
		Args:    argsBetween(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.encode(inputArg(args), format, out)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "the input is text or json")
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write; - is stdout even on a terminal")
	return cmd
}

func (a *app) encode(name, format, out string) error {
	if err := oneOf("--format", format, "text", "json"); err != nil {
		return err
	}
	src, err := a.openInput(name)
	if err != nil {
		return err
	}
	defer src.Close()
	if len(src.Data) > streamed {
		return a.encodeStream(name, format, src, out)
	}
	parse := text.Parse
	if format == "json" {
		parse = text.ParseJSON
	}
	data, err := parse(src.Data)
	if err != nil {
		return fmt.Errorf("%s: %w", inputName(name), err)
	}
	return a.writeBinary(data, out)
}

// streamed is how large a text is that is written while it is read. Of a
// smaller one nothing is written if there is an error in it.
const streamed = 16 << 20

func (a *app) encodeStream(name, format string, src *input, out string) error {
	to := io.Writer(a.out)
	switch {
	case out != "" && out != "-":
		f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("write result: %w", err)
		}
		defer f.Close()
		to = f
	case out == "" && a.out.TTY:
		return a.writeBinary(nil, out)
	}
	encode := text.Encode
	if format == "json" {
		encode = text.EncodeJSON
	}
	if err := encode(to, src.Data, src.Release); err != nil {
		return fmt.Errorf("%s: %w", inputName(name), err)
	}
	return nil
}

// oneOf checks a flag's value.
func oneOf(flag, value string, allowed ...string) error {
	for _, v := range allowed {
		if value == v {
			return nil
		}
	}
	return usagef("%s is one of %v, not %q", flag, allowed, value)
}

// openBytes opens a frame's data, with its exchange, if name is the address of a
// frame, else a file.
func (a *app) openBytes(ctx context.Context, name string) (*input, *decode.Exchange, error) {
	if parseAddress(name).Exchange == 0 {
		in, err := a.openInput(name)
		return in, nil, err
	}
	data, ex, err := a.readBytes(ctx, name)
	return &input{Data: data}, ex, err
}

// readBytes reads a frame's data, with its exchange, if name is the address of
// a frame, else a file.
func (a *app) readBytes(ctx context.Context, name string) ([]byte, *decode.Exchange, error) {
	addr := parseAddress(name)
	if addr.Exchange == 0 {
		data, err := a.readInput(name)
		return data, nil, err
	}
	store, err := openCapture(addr.File)
	if err != nil {
		return nil, nil, err
	}
	defer store.Close()
	ex, err := exchangeAt(ctx, store, addr)
	if err != nil {
		return nil, nil, err
	}
	frame, err := frameAt(ex.Exchange, addr)
	if err != nil {
		return nil, nil, err
	}
	return frame.Data, ex.Exchange, nil
}
