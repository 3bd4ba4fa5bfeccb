package record

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/leftover"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm/launch"
)

// capturePassive runs a command while its packets are recorded, and makes exchanges of
// them meanwhile.
func capturePassive(ctx context.Context, a *app.App, f CaptureFlags, argv []string) (err error) {
	series, err := seriesOptions(a, f, nil)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := leftover.Create(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	keys, err := passiveKeyLog(a, f.keylog, dir)
	if err != nil {
		return err
	}
	record, err := pcapng.CreateRecording(dir.Path(leftover.Packets))
	if err != nil {
		return err
	}
	defer record.Close()
	if err := writeAbout(dir, f, series.Options, record); err != nil {
		return err
	}
	stdout := a.Out.Writer
	if f.json {
		stdout = a.Err.Writer
	}
	imported, err := startPassiveImport(ctx, a, f, series.Options, record, keys)
	if err != nil {
		return err
	}
	code, count, err := launch.RunPassive(ctx, launch.Options{
		// Signals go to the command, and the recording ends when the command does.
		Begin: a.Signals.ChildRuns,
		Argv:  argv, QUIC: quicOptions(a, f), Stdin: a.In, Stdout: stdout, Stderr: a.Err.Writer,
	}, launch.Passive{
		Init: []string{self, "namespace-init"}, KeyLog: keys, Packet: record.Packet,
	})
	if errors.Is(err, context.Canceled) {
		return errors.Join(err, imported.abandon(record))
	}
	if err != nil {
		return app.Fail(code, errors.Join(err, imported.abandon(record)), capturetext.LaunchHint(err))
	}
	failed := record.Finish()
	if failed != nil {
		a.Say("unwire: %s recording of packets has stopped: %v", a.Err.Red("error:"), failed)
	}
	a.Say("unwire: %s recorded (%s bytes)%s", app.Counted(count.Recorded, "packet"), app.ByteSize(record.Size), capturetext.LostPackets(count))
	if err := errors.Join(imported.finish(record), keepPacketsOf(a, f.packets, record, keys)); err != nil {
		return err
	}
	if err := imported.report(ctx, launch.Inspect(argv[0])); err != nil {
		return err
	}
	return passiveStatus(code, failed)
}

// passiveStatus is the command's status, or that of a recording that has stopped.
func passiveStatus(code int, failed error) error {
	switch {
	case code != 0:
		return app.Fail(code, nil, "")
	case failed != nil:
		return app.Fail(app.ExitInput, nil, "")
	}
	return nil
}

// passiveKeyLog makes the file that the command writes its secrets to: the one
// that was asked for, which stays, or one that goes with the folder.
func passiveKeyLog(a *app.App, name string, dir *leftover.Folder) (string, error) {
	if name == "" {
		name = dir.Path(leftover.Keys)
		return name, os.WriteFile(name, nil, 0o600)
	}
	keys, err := openKeyLog(a, name)
	if err != nil {
		return "", err
	}
	if err := keys.Close(); err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// importPassive makes exchanges of the packets of a passive capture that was killed.
func importPassive(ctx context.Context, a *app.App, out string, o store.Options, record *pcapng.Recording, keys *pcap.KeyLog, each func(pcap.Connection)) (pcap.Summary, error) {
	packets, err := record.Reader()
	if err != nil {
		return pcap.Summary{}, err
	}
	defer app.LimitMemory(importMemory)()
	o.QueueBytes = importQueue
	store, err := store.Create(out, o)
	if err != nil {
		return pcap.Summary{}, err
	}
	progress := &progressReader{r: packets, size: record.Size, say: a.Say, next: time.Now().Add(app.ProgressEvery)}
	sum, err := pcap.Import(ctx, progress, pcap.Options{Store: store, Keys: keys, Source: "passive", Connection: each})
	return sum, errors.Join(err, store.Close())
}

// keepPacketsOf is keepPackets with the name of a key log; without a name of
// the packets it does nothing.
func keepPacketsOf(a *app.App, name string, p *pcapng.Recording, keyFile string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(keyFile)
	if err != nil {
		return err
	}
	defer f.Close()
	return keepPackets(a, name, p, f)
}

// keepPackets writes the packets to a file, with the secrets that open them
// before them, as readers want it.
func keepPackets(a *app.App, name string, p *pcapng.Recording, keyLog io.Reader) error {
	err := app.WholeFile(name, app.ForOwner, func(out io.Writer) error { return p.WriteWithSecrets(out, keyLog) })
	if err != nil {
		return err
	}
	a.Say("unwire: warning: %s holds the packets and the secrets that open them, tokens included: whoever\nhas it reads them all; delete it when you are done", name)
	return nil
}

// A progressReader says from time to time how far it is.
type progressReader struct {
	r    io.Reader
	done int64
	size int64
	say  func(string, ...any)
	next time.Time
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.done += int64(n)
	if now := time.Now(); now.After(p.next) && p.size > 0 {
		p.next = now.Add(app.ProgressEvery)
		p.say("unwire: reading the packets: %d %%", 100*p.done/p.size)
	}
	return n, err
}

// checkPassive refuses flags that do not go with --passive.
func checkPassive(f CaptureFlags, argv []string) error {
	if !f.passive {
		if f.packets != "" {
			return app.Fail(app.ExitUsage, errors.New("--packets belongs to --passive"), "usage: unwire capture --passive --packets FILE.pcapng -- CMD ARGS…")
		}
		return nil
	}
	if len(argv) == 0 {
		return app.Fail(app.ExitUsage, errors.New("--passive wants a command"), "usage: unwire capture --passive -- CMD ARGS…")
	}
	var wrong []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{"--transparent", f.transparent},
		{"--reverse", f.reverse != ""},
		{"--only", len(f.only) > 0},
		{"--skip", len(f.skip) > 0},
		{"--rotate", f.rotate != ""},
		{"--max-size", f.maxSize != ""},
		{"--upstream-ca", f.UpstreamCA != ""},
		{"--upstream-proxy", f.UpstreamProxy != ""},
		{"--client-cert", len(f.clientCerts)+len(f.clientKeys) > 0},
	} {
		if c.set {
			wrong = append(wrong, c.name)
		}
	}
	if len(wrong) > 0 {
		return app.Usagef("--passive does not go with %s: nothing stands in the middle", strings.Join(wrong, ", "))
	}
	return nil
}
