package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/formats"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/captures/transfer"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/capturetext"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/schema"
)

type exportFlags struct {
	format, out, proto string
	keepHeaders        bool
	asRecorded         bool
	keepUnsearched     bool
}

func exportCommand(a *app.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export F.uwc",
		Short: "Write a capture as HAR, JSON Lines, raw frames, Parquet or packets",
		Long: `export writes a capture, or one exchange of it (F.uwc#7), in an open format:

  har      HTTP Archive 1.2; what it has no place for, and the frames, in _unwire
  jsonl    an exchange a line, with every chunk of its bodies; nothing is lost
  raw      a folder with a file a frame, decompressed, and index.jsonl
  parquet  a folder with frames.parquet and fields.parquet
  pcapng   packets with the TLS secrets that open them, for Wireshark and tshark:
           made from the exchanges, not those that were on the wire

WebSockets are in all of them. Connections without HTTP have no place in a HAR, a
WebSocket without its handshake and the names of programs none in packets: what is
left out is counted.

What is written passes what 'unwire redact' does: secrets that were recorded (by
--keep-secrets, or an older version) are replaced in headers, URLs and bodies,
and so are the protobuf fields that are known to hold some, which recording does
not decode. Header fields that are not known to be harmless get placeholders for
their values as well, equal ones for equal values; --keep-headers leaves these.
Payloads that cannot be searched for secrets, such as those of other protocols, are left
out; --keep-unsearched keeps them. --as-recorded leaves everything, secrets too.`,
		Example: `  unwire export F.uwc --format har -o F.har
  unwire export F.uwc --format jsonl | jq -r .url
  unwire export F.uwc --format raw -o frames/
  unwire export F.uwc --format parquet -o tables/
  unwire export F.uwc --format pcapng -o F.pcapng`,
		Args: app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error { return export(cmd.Context(), a, f, args[0]) },
	}
	cmd.Flags().StringVar(&f.format, "format", "", "har, jsonl, raw, parquet or pcapng (default: as the name of -o ends, and raw for a folder, as in -o x/)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file, or folder of raw and parquet; - is stdout, the default of the others")
	cmd.Flags().BoolVar(&f.keepHeaders, "keep-headers", false, "unknown headers as they were recorded; known secrets are replaced")
	cmd.Flags().BoolVar(&f.asRecorded, "as-recorded", false, "everything as it was recorded: secrets too, if they were")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "payloads that cannot be searched for secrets too, such as those of other protocols")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files for names (default: those that the capture keeps, or the built-in ones; none: no names)")
	return cmd
}

func export(ctx context.Context, a *app.App, f exportFlags, name string) error {
	e, err := f.exporter()
	if err != nil {
		return err
	}
	if e.IsFolder() && (f.out == "" || f.out == "-") {
		return app.Fail(app.ExitUsage, fmt.Errorf("--format %s writes a folder, and stdout is none", e.Name), "name it with -o FOLDER")
	}
	defs, err := a.LoadDefinitions(ctx, f.proto, name)
	if err != nil {
		return err
	}
	addr := query.ParseAddress(name)
	if addr.Frame >= 0 {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s is one frame: captures and exchanges are exported", name), "'unwire decode' writes a frame")
	}
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, meter := a.ShowProgress(ctx, "exporting", name)
	defer meter.Stop()
	src, view, err := f.source(ctx, a, store.Store, addr, defs)
	if err != nil {
		return err
	}
	done, err := writeExport(ctx, a.Out, &e, f.out, src, formats.ExportOptions{
		Creator: app.Version(), Name: name,
		Type: func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
			return app.FrameType(defs, call, dir)
		},
	})
	if err != nil {
		return err
	}
	a.Say("unwire: %s", capturetext.Exported(e.Name, f.out, done))
	if view == nil {
		return nil
	}
	if view.Replaced() > 0 {
		a.Say("unwire: the capture was recorded with its secrets, in %s: they were replaced in what was written", app.Counted(view.Replaced(), "exchange"))
	}
	sayOmitted(a, view.Omitted())
	return nil
}

// source is the capture, or the exchange of it, as it may leave the machine.
// The view tells what was replaced; it is nil where nothing is.
func (f exportFlags) source(ctx context.Context, a *app.App, store *store.Store, addr query.Address, defs *schema.Schema) (src transfer.Source, view *secret.View, err error) {
	src = store
	if !f.asRecorded {
		rules, err := a.ExportRules(ctx, defs)
		if err != nil {
			return nil, nil, err
		}
		red := redact.New(redact.Options{Profile: a.Profile()})
		if !f.keepUnsearched {
			red = red.Omitting()
		}
		if view, err = secret.NewView(ctx, store, red, rules); err != nil {
			return nil, nil, err
		}
		src = view
	}
	if addr.Exchange != 0 {
		src = transfer.One(src, addr.Exchange)
	}
	if !f.asRecorded && !f.keepHeaders {
		src = transfer.Mask(src)
	}
	return src, view, nil
}

// exporter is the format that --format or the name of -o says.
func (f exportFlags) exporter() (formats.Exporter, error) {
	format := f.format
	if format == "" {
		format = strings.TrimPrefix(filepath.Ext(f.out), ".")
	}
	if f.format == "" && app.NamesFolder(f.out) {
		format = "raw"
	}
	var names []string
	for _, e := range formats.Exporters() {
		if e.Name == format {
			return e, nil
		}
		names = append(names, e.Name)
	}
	if f.format == "" {
		return formats.Exporter{}, app.Fail(app.ExitUsage, errors.New("which format?"), "say --format "+strings.Join(names, "|"))
	}
	return formats.Exporter{}, app.OneOf("--format", f.format, names...)
}

// writeExport writes to stdout, a file that is whole or not there, or a folder.
func writeExport(ctx context.Context, stdout io.Writer, e *formats.Exporter, out string, src transfer.Source, o formats.ExportOptions) (done formats.Exported, err error) {
	switch {
	case e.IsFolder():
		if err := e.CheckFolder(out); err != nil {
			return done, app.Fail(app.ExitUsage, err, "name a folder that is new or empty")
		}
		err = app.WholeFolder(out, func(temp string) error {
			done, err = e.WriteFolder(ctx, temp, src, o)
			return err
		})
		return done, err
	case out == "" || out == "-":
		return e.Write(ctx, stdout, src, o)
	}
	err = app.WholeFile(out, app.ForOwner, func(w io.Writer) error {
		done, err = e.Write(ctx, w, src, o)
		return err
	})
	return done, err
}
