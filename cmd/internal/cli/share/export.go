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
	"unwire/captures/raw"
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

// exportFlags are the values of the flags of 'unwire export'.
type exportFlags struct {
	// format is the name of the format; "" selects it by out.
	format string

	// out is the file or folder to write.
	out string

	// maxFiles is the maximum number of files of the format raw.
	maxFiles int

	// proto names definitions for field names; "" for the default.
	proto string

	// keepHeaders keeps the values of headers that are not known; by default they are masked.
	keepHeaders bool

	// asRecorded exports everything, including secrets.
	asRecorded bool

	// keepUnsearched keeps data that cannot be searched for secrets; by default it is left out.
	keepUnsearched bool

	// forwarded exports the bytes that unwire forwarded after rewriting rules, not those that it received.
	forwarded bool

	// upload is the URL of the object store to which the result is copied; "" for none.
	upload string

	// objects are the options for object stores.
	objects app.ObjectStore
}

// exportLong is the prose of the help of 'unwire export'.
const exportLong = `export converts a capture (a file with recorded traffic), or one exchange of a
capture (F.uwc#7), to one of these formats:

  har      HTTP Archive 1.2, a JSON format; unwire adds members with the name _unwire,
           which contain decoded messages and other data
  jsonl    JSON Lines: one line for each exchange, with all its data; if a rule changed
           the exchange, the line contains either the received or the forwarded data
  raw      a folder with one file for each decompressed message, and the file index.jsonl,
           which describes the files; at most 10,000 files, unless you give --max-files
  parquet  a folder with two tables: frames.parquet (messages) and fields.parquet (fields)
  pcapng   packets for Wireshark and tshark, with the TLS keys that decrypt them; export
           generates these packets from the exchanges, so they differ from the original
           packets

All formats contain WebSocket messages. har cannot contain connections without HTTP.
pcapng cannot contain names of programs, and contains a WebSocket only if its handshake
was recorded. export prints the number of exchanges that the output lacks.

If a rule (capture --rules) or 'unwire intercept' changed an exchange during the
recording, export writes the data that unwire received from the client and the server.
With --forwarded, export writes the data that unwire forwarded. For such an exchange,
the output also contains the names of the rules, and the word received or forwarded. In
har, jsonl and raw, both are in the member "rewritten". In parquet, the names are in the
column "rules", and the word is in the column "shown". In pcapng, both are in comments.

By default, export replaces secrets by placeholders, like 'unwire redact': in headers,
URLs and bodies, and in protobuf fields that are known to contain secrets. export also
replaces the values of headers that it does not know. Equal values have the same
placeholder. With --keep-headers, export keeps the values of unknown headers. Data that
export cannot search for secrets, such as data of unknown protocols, is missing in the
output; with --keep-unsearched, the output contains it. With --as-recorded, export
replaces nothing.

--upload copies the output to an object store. You can give --upload together with -o,
or without -o.`

// exportCommand returns the command 'unwire export', which converts captures to other formats.
func exportCommand(a *app.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export F.uwc",
		Short: "Write a capture as HAR, JSON Lines, raw frames, Parquet or packets",
		Long:  exportLong,
		Example: `  # Write a HAR file, which many HTTP tools can read
  unwire export F.uwc --format har -o F.har
  # Print the URLs of all exchanges
  unwire export F.uwc --format jsonl | jq -r .url
  # Write each message to its own file
  unwire export F.uwc --format raw -o frames/
  # Write tables of all messages and fields, for data analysis
  unwire export F.uwc --format parquet -o tables/
  # Copy these tables to an S3 bucket
  unwire export F.uwc --format parquet --upload s3://bucket/tables --live --allow-host s3.eu-west-1.amazonaws.com
  # Write packets that Wireshark can decrypt
  unwire export F.uwc --format pcapng -o F.pcapng`,
		Args: app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error { return export(cmd.Context(), a, f, args[0]) },
	}
	cmd.Flags().StringVar(&f.format, "format", "", "output format: har, jsonl, raw, parquet or pcapng (default: the format that the extension of -o names; raw if -o is a folder such as x/)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "output file; for raw and parquet, output folder; - is stdout (default: stdout; raw and parquet have no default)")
	cmd.Flags().BoolVar(&f.keepHeaders, "keep-headers", false, "keep the values of headers that export does not know, instead of replacing them by placeholders")
	cmd.Flags().BoolVar(&f.asRecorded, "as-recorded", false, "export all data as it was recorded, including secrets")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "also export data that export cannot search for secrets, such as data of unknown protocols")
	cmd.Flags().IntVar(&f.maxFiles, "max-files", 10_000, "with --format raw: write at most this many files")
	cmd.Flags().BoolVar(&f.forwarded, "forwarded", false, "for exchanges that rules changed: export the data that unwire forwarded (default: the data that unwire received)")
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, from which export takes field names; with the word none, the output has only field numbers (default: the definitions in the capture, else the built-in definitions)")
	cmd.Flags().StringVar(&f.upload, "upload", "", "copy the output to this object store or folder: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///PATH")
	f.objects.AddTo(cmd.Flags(), true)
	return cmd
}

// export executes 'unwire export' for a capture or an exchange.
func export(ctx context.Context, a *app.App, f exportFlags, name string) error {
	// The format decides whether the output is a file or a folder.
	e, err := f.exporter()
	if err != nil {
		return err
	}
	to, err := f.openUpload(name, &e)
	if err != nil {
		return err
	}
	defer to.close()
	if to != nil && f.out == "" {
		f.out = to.file
	}
	if e.IsFolder() && (f.out == "" || f.out == "-") {
		return app.Fail(app.ExitUsage, fmt.Errorf("--format %s writes a folder, so the output cannot be stdout", e.Name), "name the folder with -o FOLDER")
	}
	defs, err := a.LoadDefinitions(ctx, f.proto, name)
	if err != nil {
		return err
	}

	// A frame is not an exchange; decode prints frames.
	addr := query.ParseAddress(name)
	if addr.Frame >= 0 {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s is a frame, but export needs a capture or an exchange", name), "'unwire decode' prints a frame")
	}
	store, err := a.OpenForwarded(addr.File, [2]bool{f.forwarded, f.forwarded})
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, meter := a.ShowProgress(ctx, "exporting", name)
	defer meter.Stop()

	// By default the source is a view without secrets; the capture itself is not changed.
	src, view, err := f.source(ctx, a, store.Store, addr, defs)
	if err != nil {
		return err
	}
	done, err := writeExport(ctx, a.Out, &e, f.out, src, formats.ExportOptions{
		Creator: app.Version(), Name: name, MaxFiles: f.maxFiles,
		Type: func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
			return app.FrameType(defs, call, dir)
		},
	})
	if err != nil {
		return err
	}

	// The upload copies the finished file, so that a failed export uploads nothing.
	if err := to.send(ctx, a, f.out); err != nil {
		return err
	}
	a.Say("unwire: %s", capturetext.Exported(e.Name, to.shown(f.out), done))
	if err := f.sayRewritten(ctx, a, store.Store, addr); err != nil {
		return err
	}
	if view == nil {
		return nil
	}

	// Secrets in the capture itself are worth a warning, even if the export has none.
	if view.Replaced() > 0 {
		a.Say("unwire: replaced secrets in %s; the capture itself still contains them", app.Counted(view.Replaced(), "exchange"))
	}
	sayOmitted(a, view.Omitted())
	return nil
}

// source returns what is exported: the capture or one exchange of it, with secrets replaced. view counts
// the replacements; it is nil with --as-recorded.
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
		src = transfer.OnlyExchange(src, addr.Exchange)
	}
	if !f.asRecorded && !f.keepHeaders {
		src = transfer.Mask(src)
	}
	return src, view, nil
}

// sayRewritten prints, if rewriting rules had changed exchanges, whether received or forwarded bytes were
// exported.
func (f exportFlags) sayRewritten(ctx context.Context, a *app.App, store *store.Store, addr query.Address) error {
	edited, err := store.EditedExchanges(ctx)
	n := len(edited)
	if addr.Exchange != 0 {
		n = 0
		if edited[addr.Exchange] {
			n = 1
		}
	}
	switch {
	case err != nil || n == 0:
		return err
	case f.forwarded:
		a.Say("unwire: rules changed %s: the export contains the data that unwire forwarded", app.Counted(n, "exchange"))
	default:
		a.Say("unwire: rules changed %s: the export contains the data that unwire received; --forwarded writes the forwarded data", app.Counted(n, "exchange"))
	}
	return nil
}

// exporter returns the exporter for the format that --format or the file name in -o selects.
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
		problem := "the format of the output is missing"
		if f.out != "" && f.out != "-" {
			problem = "the format is unknown: the name " + f.out + " has no known ending"
		}
		return formats.Exporter{}, app.Fail(app.ExitUsage, errors.New(problem), "name the format with --format "+strings.Join(names, "|"))
	}
	return formats.Exporter{}, app.OneOf("--format", f.format, names...)
}

// writeExport writes an export to a folder, a file or stdout, as the format and out require. Files and
// folders are created atomically.
func writeExport(ctx context.Context, stdout io.Writer, e *formats.Exporter, out string, src transfer.Source, o formats.ExportOptions) (done formats.ExportResult, err error) {
	switch {
	case e.IsFolder():
		if err := e.CheckFolder(out); err != nil {
			return done, app.Fail(app.ExitUsage, err, "give a folder that is new or empty")
		}
		err = app.WholeFolder(out, func(temp string) error {
			done, err = e.WriteFolder(ctx, temp, src, o)
			return err
		})
		if many := (*raw.TooManyError)(nil); errors.As(err, &many) {
			return done, app.Fail(app.ExitUsage, err, fmt.Sprintf("allow more files, such as --max-files %d; or write a single file with --format jsonl; or export only one exchange, such as F.uwc#7", 2*(many.Before+many.Frames)))
		}
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
