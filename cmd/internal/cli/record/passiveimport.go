package record

import (
	"context"
	"errors"
	"os"
	"time"

	"unwire/captures/passive"
	"unwire/captures/pcap"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm/launch"
	"unwire/mitm/process"
)

// A passiveImport converts packets to exchanges while they are being recorded.
type passiveImport struct {
	app       *app.App
	flags     CaptureFlags
	recording *passive.Recording
	cancel    func() // of the limit of memory
	finder    *process.Finder
	programs  *process.Table

	// summary and the fields below are written by the import's goroutine. They may be read after
	// finish.
	summary   pcap.Summary
	printErr  error
	undecoded []pcap.Connection
	noKey     int
}

// startPassive creates the capture, and starts to turn recorded packets into exchanges.
func startPassive(ctx context.Context, a *app.App, f CaptureFlags) (*passiveImport, error) {
	f.announcer.begin()
	series, err := seriesOptions(a, f, nil)
	if err != nil {
		return nil, err
	}
	keyLog, err := passiveKeyLog(a, f.keylog)
	if err != nil {
		return nil, err
	}
	p := &passiveImport{app: a, flags: f, cancel: app.LimitMemory(app.ImportMemory), finder: process.NewFinder()}
	p.programs = process.NewTable(p.finder)
	p.recording, err = passive.Start(ctx, os.TempDir(), passive.Options{
		Output: f.Out, Store: series.Options, KeyLog: keyLog, Packets: f.packets, Connection: p.connection,
		Target: p.programs.Target,
	})
	if err != nil {
		p.finder.Close()
		p.cancel()
		return nil, err
	}
	return p, nil
}

// connection reports a connection that is over, or keeps it for the end.
func (p *passiveImport) connection(c pcap.Connection) {
	if c.NoKey {
		p.noKey++
	}
	if p.flags.json {
		p.printErr = errors.Join(p.printErr, p.app.Print(contract.NewConnection(c)))
		return
	}
	if len(c.Undecoded)+len(c.Gaps) > 0 && len(p.undecoded) < maxConnectionRows {
		p.undecoded = append(p.undecoded, c)
	}
}

// finish waits until everything that was recorded is imported, and closes the capture.
func (p *passiveImport) finish() (err error) {
	defer p.cancel()
	p.summary, err = p.recording.Finish(p.app.PacketProgress())
	return errors.Join(err, p.printErr)
}

// abandon ends the import if the command did not run.
func (p *passiveImport) abandon() error {
	defer p.cancel()
	return p.recording.Abandon()
}

// report prints what was recorded or, if nothing was, the probable reason and its remedy.
func (p *passiveImport) report(ctx context.Context, on launch.Runtime) error {
	a, f := p.app, p.flags
	if f.json {
		if err := a.Print(contract.NewImportedPackets(p.summary)); err != nil {
			return err
		}
	}

	// List what could not be decoded for each connection, before the summary.
	for _, c := range p.undecoded {
		name := c.ServerName
		if name != "" {
			name = " (" + name + ")"
		}
		for _, problem := range capturetext.Problems(c) {
			a.Say("unwire: %s%s: %s", c.Server, name, problem)
		}
	}
	n, err := sayEnded(ctx, a, f, []string{f.Out}, time.Time{}, "")
	if err != nil {
		return err
	}
	switch {
	case p.noKey > 0:
		a.Say("unwire: hint: %s", capturetext.MissingKeyHint(p.noKey, on))
	case n == 0:
		a.Say("unwire: hint: CMD sent no data over any TCP connection")
	}
	return nil
}
