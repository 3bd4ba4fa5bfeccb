package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/har"
	"unwire/captures/jsonl"
	"unwire/captures/parquet"
	"unwire/captures/pcapng"
	"unwire/captures/raw"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/captures/transfer"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
)

type exportFlags struct {
	format, out, proto string
	keepHeaders        bool
	asRecorded         bool
	keepUnsearched     bool
}

// A typeFinder finds the message type of a call's frames.
type typeFinder = func(decode.Call, captures.Direction) protoreflect.MessageDescriptor

// An exporter is a format that captures are written in: to a stream or into a
// folder. It returns what it did, in words.
type exporter struct {
	name   string
	stream func(ctx context.Context, w io.Writer, src captures.Capture, find typeFinder) (string, error)
	folder func(ctx context.Context, dir string, src captures.Capture, find typeFinder) (string, error)
}

func exporters(name string) []exporter {
	return []exporter{
		{name: "har", stream: exportHAR},
		{name: "jsonl", stream: exportJSONL},
		{name: "raw", folder: exportRaw},
		{name: "parquet", folder: exportParquet},
		{name: "pcapng", stream: exportPackets(name)},
	}
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

What is written passes what 'unwire redact' does: secrets that were recorded (by
--keep-secrets, or an older version) are replaced in headers, URLs and bodies,
and so are the protobuf fields that are known to hold some, which recording does
not decode. Header fields that are not known to be harmless get placeholders for
their values as well, equal ones for equal values; --keep-headers leaves these.
Payloads that cannot be searched for secrets, such as those of WebSockets, are left
out; --keep-unsearched keeps them. --as-recorded leaves everything, secrets too.`,
		Example: `  unwire export F.uwc --format har -o F.har
  unwire export F.uwc --format jsonl | jq -r .url
  unwire export F.uwc --format raw -o frames/
  unwire export F.uwc --format parquet -o tables/
  unwire export F.uwc --format pcapng -o F.pcapng`,
		Args: app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error { return export(cmd.Context(), a, f, args[0]) },
	}
	cmd.Flags().StringVar(&f.format, "format", "", "har, jsonl, raw, parquet or pcapng (default: as the name of -o ends)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file, or folder of raw and parquet; - is stdout, the default of the others")
	cmd.Flags().BoolVar(&f.keepHeaders, "keep-headers", false, "unknown headers as they were recorded; known secrets are replaced")
	cmd.Flags().BoolVar(&f.asRecorded, "as-recorded", false, "everything as it was recorded: secrets too, if they were")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "payloads that cannot be searched for secrets too, such as those of WebSockets")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files for names (default: the built-in ones; none: no names)")
	return cmd
}

func export(ctx context.Context, a *app.App, f exportFlags, name string) error {
	e, err := f.exporter(name)
	if err != nil {
		return err
	}
	if e.folder != nil && (f.out == "" || f.out == "-") {
		return app.Fail(app.ExitUsage, fmt.Errorf("--format %s writes a folder, and stdout is none", e.name), "name it with -o FOLDER")
	}
	defs, err := app.LoadDefinitions(ctx, f.proto)
	if err != nil {
		return err
	}
	addr := query.ParseAddress(name)
	if addr.Frame >= 0 {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s is one frame: captures and exchanges are exported", name), "'unwire decode' writes a frame")
	}
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	src, view, err := f.source(ctx, store.Store, addr, defs)
	if err != nil {
		return err
	}
	find := func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		return app.FrameType(defs, call, dir)
	}
	done, err := e.write(ctx, a.Out, f.out, src, find)
	if err != nil {
		return exportError(err)
	}
	a.Say("unwire: %s", done)
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
func (f exportFlags) source(ctx context.Context, store *store.Store, addr query.Address, defs *schema.Schema) (src captures.Capture, view *secret.View, err error) {
	src = store
	if !f.asRecorded {
		rules, err := app.ExportRules(ctx, defs)
		if err != nil {
			return nil, nil, err
		}
		red := redact.New(redact.Options{Profile: proto.Profile()})
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
func (f exportFlags) exporter(name string) (exporter, error) {
	format := f.format
	if format == "" {
		format = strings.TrimPrefix(filepath.Ext(f.out), ".")
	}
	var names []string
	for _, e := range exporters(name) {
		if e.name == format {
			return e, nil
		}
		names = append(names, e.name)
	}
	if f.format == "" {
		return exporter{}, app.Fail(app.ExitUsage, errors.New("which format?"), "say --format "+strings.Join(names, "|"))
	}
	return exporter{}, app.OneOf("--format", f.format, names...)
}

// write writes to stdout, a file that is whole or not there, or a folder.
func (e exporter) write(ctx context.Context, stdout io.Writer, out string, src captures.Capture, find typeFinder) (done string, err error) {
	switch {
	case e.folder != nil:
		return e.folder(ctx, out, src, find)
	case out == "" || out == "-":
		return e.stream(ctx, stdout, src, find)
	}
	err = app.WholeFile(out, app.ForOwner, func(w io.Writer) error {
		done, err = e.stream(ctx, w, src, find)
		return err
	})
	return done, err
}

func exportError(err error) error {
	if errors.Is(err, raw.ErrNotEmpty) {
		return app.Fail(app.ExitUsage, err, "name a folder that is new or empty")
	}
	return err
}

func exportHAR(ctx context.Context, w io.Writer, src captures.Capture, find typeFinder) (string, error) {
	done, err := har.Export(ctx, w, src, har.Options{Creator: app.Version(), Type: find})
	said := app.Counted(done.Exchanges, "exchange") + " written"
	if done.Omitted > 0 {
		said += fmt.Sprintf(", %d of them without their bodies, which are too large for a HAR: --format jsonl has them", done.Omitted)
	}
	return said, err
}

func exportJSONL(ctx context.Context, w io.Writer, src captures.Capture, _ typeFinder) (string, error) {
	n, err := jsonl.Export(ctx, w, src)
	return app.Counted(n, "exchange") + " written", err
}

func exportPackets(name string) func(context.Context, io.Writer, captures.Capture, typeFinder) (string, error) {
	return func(ctx context.Context, w io.Writer, src captures.Capture, _ typeFinder) (string, error) {
		done, err := pcapng.Export(ctx, w, src, pcapng.Options{Name: name})
		said := fmt.Sprintf("%s written as %s of %s, with the secrets that open them",
			app.Counted(done.Exchanges, "exchange"), app.Counted(int(done.Packets), "packet"), app.Counted(done.Connections, "connection"))
		if done.LeftOut > 0 {
			said += fmt.Sprintf("; %d left out, which never reached the server or are tunnels", done.LeftOut)
		}
		if done.Reframed > 0 {
			said += fmt.Sprintf("; %d bodies are sent in chunks, as they have not the length that their headers say", done.Reframed)
		}
		return said, err
	}
}

func exportRaw(ctx context.Context, dir string, src captures.Capture, _ typeFinder) (string, error) {
	var done raw.Written
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("raw: %s %w", dir, raw.ErrNotEmpty)
	}
	err := app.WholeFolder(dir, func(temp string) (err error) {
		done, err = raw.Export(ctx, temp, src)
		return err
	})
	return fmt.Sprintf("%s of %s written to %s", app.Counted(done.Frames, "frame"), app.Counted(done.Exchanges, "exchange"), dir), err
}

func exportParquet(ctx context.Context, dir string, src captures.Capture, find typeFinder) (said string, err error) {
	var done parquet.Written
	err = app.WholeFolder(dir, func(temp string) error {
		return app.WholeFile(filepath.Join(temp, "frames.parquet"), app.ForOwner, func(frames io.Writer) error {
			return app.WholeFile(filepath.Join(temp, "fields.parquet"), app.ForOwner, func(fields io.Writer) error {
				done, err = parquet.Export(ctx, frames, fields, src, parquet.Options{Type: find})
				return err
			})
		})
	})
	return fmt.Sprintf("%s with %s of %s written to %s", app.Counted(done.Frames, "frame"), app.Counted(done.Fields, "field"), app.Counted(done.Exchanges, "exchange"), dir), err
}
