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
	// app is the running program.
	app *app.App

	// flags are the flags of capture.
	flags CaptureFlags

	// recording stores the packets and converts them.
	recording *passive.Recording

	// cancel removes the memory limit that applies during the import.
	cancel func()

	// finder finds out which process opened a connection, and programs keeps the results by connection.
	finder *process.Finder

	// programs has the process of each connection.
	programs *process.Table

	// summary counts the imported packets, connections and exchanges. This and the fields below are
	// written by the import's goroutine, and may be read after finish.
	summary pcap.Summary

	// printErr is the error of printing connections as JSON.
	printErr error

	// undecoded are the connections that could not be decoded completely.
	undecoded []pcap.Connection

	// noKey is the number of TLS connections whose keys are missing.
	noKey int
}

// startPassive creates the capture, and starts to convert packets to exchanges.
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

// connection is called when a connection has ended. It prints the connection as JSON, or stores it in
// undecoded for the final report.
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

// finish waits until all recorded packets have been imported, and closes the capture.
func (p *passiveImport) finish() (err error) {
	defer p.cancel()
	p.summary, err = p.recording.Finish(p.app.PacketProgress())
	return errors.Join(err, p.printErr)
}

// abandon stops the import because the command could not be run.
func (p *passiveImport) abandon() error {
	defer p.cancel()
	return p.recording.Abandon()
}

// report prints how many exchanges were recorded or, if there are none, the probable reason and what to
// do. on is the language runtime of the command.
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
