package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/decode/text"
	"unwire/schema/protoform"
)

// encodeCommand returns the command 'unwire encode', the inverse of decode.
func encodeCommand(a *app.App) *cobra.Command {
	var f encodeFlags
	cmd := &cobra.Command{
		Use:   "encode [FILE|-]",
		Short: "Encode the text or JSON of 'unwire decode' back to bytes",
		Long: `encode reads the output of 'unwire decode', also after you edited it, or
Protoscope text. encode writes the bytes in the encoding of the original input (raw,
hex, base64, gzip), and computes the lengths of edited fields.

If a value is itself hex, base64, gzip, JSON or gRPC frames, decode also prints the
content of the value, in lines that begin with #|. If you edit these lines, encode
builds the value from them. If the value is compressed (gzip or zstd), its new bytes can
differ from the original bytes, also in parts that you did not edit.

With --in protojson or --in prototext, encode reads the output of 'unwire show
--format'. encode then needs the .proto definitions of the message type. The first line
of prototext output names the type; for protojson, give the type with --type.`,
		Example: `  # Decode a message to text, which you can edit
  unwire decode frame.bin > frame.txt
  # Encode the edited text
  unwire encode frame.txt > edited.bin
  # Get the bytes of a captured message from its text format
  unwire show --format prototext F.uwc#2/up/0 | unwire encode --in prototext > frame.bin
  # Encode JSON to the same message type as a captured message
  unwire encode --in protojson --type F.uwc#2/up/0 frame.json > frame.bin`,
		Args: app.ArgsBetween(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), a, inputArg(args))
		},
	}
	cmd.Flags().StringVar(&f.format, "in", formatText, "input format: text (output of 'unwire decode'), json (output of 'unwire decode --json'), protojson or prototext (output of 'unwire show --format')")
	options.Alias(cmd.Flags(), "format", "in")
	cmd.Flags().StringVar(&f.typeName, "type", "", "with --in protojson or prototext: full name of the message type, such as pkg.Message, or the address of a captured message of this type, such as F.uwc#1/up/0")
	cmd.Flags().StringVar(&f.proto, "proto", "", "with --in protojson or prototext: .proto definitions that contain the message type (default: the built-in definitions)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file to which encode writes the bytes; with -, encode writes them to stdout, also on a terminal")
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON object with the number of bytes, and with the bytes in base64; with -o, the object contains the name of the output file instead of the bytes")
	return cmd
}

// encodeFlags are the values of the flags of 'unwire encode'.
type encodeFlags struct {
	// format is the input format (--in): text, json, protojson or prototext.
	format string

	// typeName is the full name of the message type (--type).
	typeName string

	// proto names definitions; "" for the default.
	proto string

	// out is the file to write; "" for stdout.
	out string

	// json prints a JSON object that describes the result.
	json bool
}

// run executes 'unwire encode' for the input name, a file or "-".
func (f encodeFlags) run(ctx context.Context, a *app.App, name string) error {
	if f.json && f.out == "-" {
		return app.Usagef("--json and -o - both write to stdout")
	}
	if err := app.OneOf("--in", f.format, append([]string{formatText, "json"}, protoform.Formats()...)...); err != nil {
		return err
	}
	if slices.Contains(protoform.Formats(), f.format) {
		return encodeByDefinitions(ctx, a, name, f)
	}
	if f.typeName != "" || f.proto != "" {
		return app.Usagef("--type and --proto require --in protojson or prototext")
	}
	return encode(a, name, f)
}

// encode encodes the text or JSON that 'unwire decode' prints. Input above the limit streamed is encoded
// by encodeStream.
func encode(a *app.App, name string, f encodeFlags) error {
	format := f.format
	src, err := a.OpenInput(name, app.MaxText)
	if err != nil {
		return err
	}
	defer src.Close()
	if len(src.Data) > streamed {
		return encodeStream(a, name, format, src, f)
	}
	parse := text.Parse
	if format == "json" {
		parse = text.ParseJSON
	}
	data, err := parse(src.Data)
	if err != nil && format == "text" && json.Valid(src.Data) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "the input looks like JSON: use --in json")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", app.InputName(name), err)
	}
	return f.write(a, data)
}

// write writes the encoded bytes to the output; with --json, it prints an object that describes the
// result.
func (f encodeFlags) write(a *app.App, data []byte) error {
	if !f.json {
		return a.WriteBinary(data, f.out)
	}
	result := &contract.Encoded{Bytes: int64(len(data)), Output: f.out}
	if f.out == "" {
		result.Data = data
	} else if err := a.WriteBinary(data, f.out); err != nil {
		return err
	}
	return a.Print(result)
}

// streamed is the size of the input in bytes above which output is written while the input is parsed. If
// smaller input has an error, nothing is written.
const streamed = 16 << 20

// encodeStream encodes large input src, and writes the result while it parses. name is for messages.
func encodeStream(a *app.App, name, format string, src *app.Input, f encodeFlags) error {
	encode := text.Encode
	if format == "json" {
		encode = text.EncodeJSON
	}
	var size byteCounter
	write := func(to io.Writer) error {
		if err := encode(io.MultiWriter(to, &size), src.Data, src.Release); err != nil {
			return fmt.Errorf("%s: %w", app.InputName(name), err)
		}
		return nil
	}
	switch {
	case f.json && f.out == "":
		return app.Fail(app.ExitUsage, fmt.Errorf("%s is too large to print its bytes as JSON", app.InputName(name)), "write the bytes to a file with -o FILE")
	case f.out != "" && f.out != "-":
		if err := app.WholeFile(f.out, app.ForOwner, write); err != nil || !f.json {
			return err
		}
		return a.Print(&contract.Encoded{Bytes: int64(size), Output: f.out})
	case f.out == "" && a.Out.TTY:
		return a.WriteBinary(nil, f.out)
	}
	return write(a.Out)
}

// A byteCounter is an io.Writer that counts the bytes written to it.
type byteCounter int64

// Write counts p.
func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
