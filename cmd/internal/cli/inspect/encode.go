package inspect

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/options"
	"unwire/decode/text"
)

func encodeCommand(a *app.App) *cobra.Command {
	var in, out string
	cmd := &cobra.Command{
		Use:   "encode [FILE|-]",
		Short: "Turn decode's text or JSON back into bytes",
		Long: `encode reads the text that decode writes, and any that Protoscope reads, and
writes the bytes that it stands for, in the way that they were written in (hex, base64,
gzip). Lengths are made anew, and so is a value below which its content was edited, in
lines that begin with #|: gzip and zstd then by our own compressor.`,
		Example: "  unwire decode frame.bin > frame.txt\n  unwire encode frame.txt > edited.bin",
		Args:    app.ArgsBetween(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return encode(a, inputArg(args), in, out)
		},
	}
	cmd.Flags().StringVar(&in, "in", "text", "the input is text or json")
	options.Alias(cmd.Flags(), "format", "in")
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write; - is stdout even on a terminal")
	return cmd
}

func encode(a *app.App, name, format, out string) error {
	if err := app.OneOf("--in", format, "text", "json"); err != nil {
		return err
	}
	src, err := a.OpenInput(name, app.MaxText)
	if err != nil {
		return err
	}
	defer src.Close()
	if len(src.Data) > streamed {
		return encodeStream(a, name, format, src, out)
	}
	parse := text.Parse
	if format == "json" {
		parse = text.ParseJSON
	}
	data, err := parse(src.Data)
	if err != nil && format == "text" && json.Valid(src.Data) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "it is JSON: --in json")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", app.InputName(name), err)
	}
	return a.WriteBinary(data, out)
}

// streamed is how large a text is that is written while it is read. Of a
// smaller one nothing is written if there is an error in it.
const streamed = 16 << 20

func encodeStream(a *app.App, name, format string, src *app.Input, out string) error {
	encode := text.Encode
	if format == "json" {
		encode = text.EncodeJSON
	}
	write := func(to io.Writer) error {
		if err := encode(to, src.Data, src.Release); err != nil {
			return fmt.Errorf("%s: %w", app.InputName(name), err)
		}
		return nil
	}
	switch {
	case out != "" && out != "-":
		return app.WholeFile(out, app.ForOwner, write)
	case out == "" && a.Out.TTY:
		return a.WriteBinary(nil, out)
	}
	return write(a.Out)
}
