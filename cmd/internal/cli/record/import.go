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
	"unwire/cmd/internal/render/capturetext"
)

const (
	// bytes that wait for the disk: a file can wait, other than traffic
	importQueue = 16 << 20
)

// maxConnectionRows is how many connections a table lists; --json lists all.
const maxConnectionRows = 10_000

// An importJob is a file to be imported, and how.
type importJob struct {
	file   string
	keys   *pcap.KeyLog
	asJSON bool
}

func importCommand(a *app.App) *cobra.Command {
	var out string
	var keyLogs []string
	var keep bool
	var job importJob
	cmd := &cobra.Command{
		Use:   "import FILE -o F.uwc",
		Short: "Read what another tool recorded into a capture",
		Long: `import reads FILE, whose format it tells from its content (it may be compressed
with gzip or zstd), and adds its exchanges to a capture. Secrets are replaced as when recording.

pcap and pcapng: TCP is put together, TLS 1.2 and 1.3 are opened with the keys of
--keylog and of the file's own secrets blocks, HTTP/1.1, HTTP/2 and WebSockets are
read off. What is not HTTP becomes an exchange tcp://HOST:PORT or tls://HOST:PORT.
Connections are listed with what could not be decoded, and why. QUIC is counted.

HAR 1.2, mitmproxy's flow files and JSON Lines (as 'unwire export' writes them), with
the messages of WebSockets (in a HAR as Chrome writes them) and flows of TCP: what could
not be read, or was not in the file, is listed with its place.`,
		Example: "  unwire import x.pcapng --keylog keys.txt -o F.uwc\n  unwire import --json x.pcap -o F.uwc | jq 'select(.undecoded)'\n  unwire import x.pcapng.gz -o F.uwc\n  unwire import page.har -o F.uwc",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return app.Usagef("unwire import: -o F.uwc is missing")
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
	f.StringVarP(&out, "output", "o", "", "the capture to write or add to")
	f.StringArrayVar(&keyLogs, "keylog", nil, "NSS key log (SSLKEYLOGFILE) with the keys of TLS sessions; may be repeated")
	f.BoolVar(&keep, "keep-secrets", false, "do not replace secrets")
	f.BoolVar(&job.asJSON, "json", false, "a JSON object a line")
	return cmd
}

func importFile(ctx context.Context, a *app.App, j importJob, out string, keep bool) error {
	in, head, closeIn, err := openForeign(a, j.file)
	if err != nil {
		return err
	}
	defer closeIn()
	input, err := formats.Open(in, head)
	if errors.Is(err, formats.ErrUnknown) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", j.file, err), "import reads "+formats.ImportNames())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.file, err)
	}
	defer app.LimitMemory(app.ImportMemory)()
	return importInto(ctx, a, out, store.Options{KeepSecrets: keep, QueueBytes: importQueue}, func(store *store.Store) error {
		return j.run(ctx, a, input, store)
	})
}

// run imports the file, and reports what became of it, also of what was read before an
// error.
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
		return app.Fail(app.ExitFinding, errors.New("no exchange could be read"), "")
	}
	return printErr
}

// print prints what became of an import, after its connections where these are JSON.
func (j *importJob) print(a *app.App, done formats.Imported, conns []pcap.Connection) (err error) {
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

// importInto has run fill a new capture, which gets its name when all was read, or
// add to one that exists. What was read before an error in the input is kept; an
// interrupt or an error of the disk leaves no new capture.
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
	return cmp.Or(err, badInput)
}

// openForeign opens a file, or stdin for "-", and looks at its beginning.
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
