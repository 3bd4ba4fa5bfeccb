package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"unwire/captures/formats"
	"unwire/captures/pcap"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/capturetext"
	"unwire/cmd/internal/term"
)

const (
	// importQueue is the number of bytes that may wait for being written. Unlike traffic, an imported file
	// can wait for the disk.
	importQueue = 16 << 20
)

// maxConnectionRows is the largest number of connections in a table; --json lists all.
const maxConnectionRows = 10_000

// An importJob is one file to be imported, with its options.
type importJob struct {
	// file is the path, or "-" for standard input.
	file string

	// keys has the TLS keys from --keylog, which decrypt packets.
	keys *pcap.KeyLog

	// asJSON prints the result as JSON.
	asJSON bool
}

// importCommand returns the command 'unwire import'.
func importCommand(a *app.App) *cobra.Command {
	var out string
	var keyLogs []string
	var keep bool
	var job importJob
	cmd := &cobra.Command{
		Use:   "import FILE -o F.uwc",
		Short: "Convert a recording of another tool to a capture",
		Long: `import converts FILE, a recording of another tool, and adds its exchanges
(requests with their answers) to the capture F.uwc. import detects the format of FILE
from its content; FILE may be compressed with gzip or zstd. import replaces secrets by
placeholders, as 'unwire capture' does.

If FILE contains packets (pcap or pcapng), import reassembles the TCP connections, and
decrypts TLS 1.2 and 1.3. The TLS keys come from --keylog and from FILE itself. import
decodes HTTP/1.1, HTTP/2 and WebSockets. For a connection with another protocol, import
stores the bytes of both directions, as an exchange with the URL tcp://HOST:PORT or
tls://HOST:PORT. If import cannot decode some data of a connection, it reports the
amount and the reason. import cannot decode QUIC; it reports the number of QUIC packets.

FILE can also be a HAR 1.2 file, a flow file of mitmproxy, or the JSON Lines of 'unwire
export'. import reads the HTTP exchanges, the WebSocket messages and the TCP flows in
these files. import reads WebSocket messages in a HAR file only if these messages are in
the format that Chrome writes. import lists each entry of FILE that it cannot read, and
each entry with missing data.`,
		Example: `  # Decrypt packets with the TLS keys that a program logged
  unwire import x.pcapng --keylog keys.txt -o F.uwc
  # List the connections that import could not decode completely
  unwire import --json x.pcap -o F.uwc | jq 'select(.undecoded)'
  # Import a compressed file that also contains its TLS keys
  unwire import x.pcapng.gz -o F.uwc
  # Import the requests of a page that a browser saved as a HAR file
  unwire import page.har -o F.uwc`,
		Args: app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return app.Fail(app.ExitUsage, errors.New("unwire import: -o F.uwc is missing"), "usage: unwire import FILE -o F.uwc")
			}
			job.file = args[0]
			job.keys = new(pcap.KeyLog)
			for _, name := range keyLogs {
				if err := readKeyLog(job.keys, name); err != nil {
					return err
				}
			}
			return importFile(cmd.Context(), a, job, out, keep)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "capture file to create, or to append to if it exists")
	f.StringArrayVar(&keyLogs, "keylog", nil, "file with the TLS keys of the recorded connections, in SSLKEYLOGFILE format; can be repeated")
	f.BoolVar(&keep, "keep-secrets", false, "keep secrets, such as tokens and cookies, instead of replacing them by placeholders")
	f.BoolVar(&job.asJSON, "json", false, "print the result as JSON, one object per line")
	return cmd
}

// importFile detects the format of a job's file, and imports its exchanges into the capture out. keep
// does not redact secrets.
func importFile(ctx context.Context, a *app.App, j importJob, out string, keep bool) error {
	in, head, closeIn, err := openForeign(a, j.file)
	if err != nil {
		return err
	}
	defer closeIn()
	meter := a.ShowFileProgress(ctx, "importing", fileSize(j.file))
	defer meter.Stop()
	if meter != nil {
		in = meter.Reader(j.file, in)
	}
	input, err := formats.Open(in, head)
	if errors.Is(err, formats.ErrUnknown) && query.IsCapture(j.file) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s is an unwire capture already", j.file), "'unwire ls FILE' lists its exchanges")
	}
	if errors.Is(err, formats.ErrUnknown) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", j.file, err), "supported formats: "+formats.ImportNames())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.file, err)
	}
	defer app.LimitMemory(app.ImportMemory)()
	return importInto(ctx, a, out, store.Options{KeepSecrets: keep, QueueBytes: importQueue}, func(store *store.Store) error {
		return j.run(ctx, a, input, store)
	})
}

// run imports the exchanges into store, and prints a report. After an error, the report covers what was
// imported before.
func (j *importJob) run(ctx context.Context, a *app.App, input *formats.Input, store *store.Store) error {
	var conns []pcap.Connection
	var printErr error
	done, err := input.Import(ctx, formats.ImportOptions{Store: store, Keys: j.keys, Connection: func(c pcap.Connection) {
		switch {
		case j.asJSON:
			printErr = errors.Join(printErr, a.Print(contract.NewConnection(c)))
		case len(conns) < maxConnectionRows:
			conns = append(conns, c)
		}
	}})
	name := j.file
	if done.Report != nil {
		name = app.InputName(j.file)
	}
	printErr = errors.Join(printErr, j.print(a, done, conns))
	switch {
	case done.Report != nil && printErr != nil:
		return printErr
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case printErr == nil && done.Exchanges() == 0:
		return app.Fail(app.ExitFinding, errors.New("the file contains no exchange that could be imported"), "")
	}
	return printErr
}

// print prints the report of an import: done has the counts, and conns the connections that were found in
// packets.
func (j *importJob) print(a *app.App, done formats.ImportResult, conns []pcap.Connection) (err error) {
	switch {
	case done.Report != nil && j.asJSON:
		return a.Print(contract.NewImported(*done.Report))
	case done.Report != nil:
		capturetext.ImportReport(a.Err, done.Report)
		return nil
	case j.asJSON:
		err = a.Print(contract.NewImportedPackets(*done.Summary))
	case len(conns) > 0:
		err = capturetext.Connections(a.Out, conns)
	}
	a.Say("%s", capturetext.ImportSummary(*done.Summary))
	return err
}

// importInto calls run with the capture out, which may exist. A new capture appears under its name only
// when the import has finished. Exchanges that were read before an error in the input are kept; after an
// interrupt or a disk error there is no new capture.
func importInto(ctx context.Context, a *app.App, out string, o store.Options, run func(*store.Store) error) error {
	if info, err := os.Stat(out); err == nil && (info.Size() > 0 || !info.Mode().IsRegular()) {
		store, err := store.Create(out, a.IndexedWhenClosed(o))
		if err != nil {
			return err
		}
		return errors.Join(run(store), store.Close())
	}
	var badInput error
	err := a.WholeCapture(ctx, out, o, func(store *store.Store) error {
		if badInput = run(store); ctx.Err() != nil {
			return badInput
		}
		return store.Err()
	})
	if err != nil && ctx.Err() != nil { // the report has counted exchanges
		a.Say("unwire: %s was not created, because the import did not finish", term.Clean(out))
	}
	return cmp.Or(err, badInput)
}

// openForeign opens a file in another program's format, or standard input if name is "-". head is a copy
// of its first bytes, from which the format is detected; in still returns them.
func openForeign(a *app.App, name string) (in io.Reader, head []byte, closeIn func(), err error) {
	if name == "-" {
		r := bufio.NewReaderSize(a.Input, formats.HeadBytes)
		head, err = r.Peek(formats.HeadBytes)
		if err == io.EOF {
			err = nil
		}
		return r, head, func() {}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, nil, err
	}
	from := a.Interruptible(f)
	head = make([]byte, formats.HeadBytes)
	n, err := io.ReadFull(from, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	in, closeIn = f, func() { _ = f.Close() }
	if _, err := f.Seek(0, io.SeekStart); err != nil { // a pipe
		in = io.MultiReader(bytes.NewReader(head[:n]), from)
	}
	return in, head[:n], closeIn, nil
}

// fileSize returns the size of a regular file in bytes; 0 for anything else.
func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// readKeyLog adds the TLS keys in a key log file to keys.
func readKeyLog(keys *pcap.KeyLog, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := keys.Read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
