package record

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm/launch"
)

// A passiveImport makes exchanges of packets while they are recorded.
type passiveImport struct {
	app    *app.App
	flags  CaptureFlags
	store  *store.Store
	isNew  bool // the capture was not there before
	keyLog *os.File
	read   atomic.Int64 // bytes of packets
	cancel func()       // of the limit of memory

	// done is closed when the import has ended. What follows is set by then.
	done      chan struct{}
	summary   pcap.Summary
	err       error
	undecoded []pcap.Connection
	noKey     int
}

// startPassiveImport creates the capture and begins to import what record gets.
func startPassiveImport(ctx context.Context, a *app.App, f CaptureFlags, o store.Options, record *pcapng.Recording, keyFile string) (*passiveImport, error) {
	f.announcer.begin()
	_, err := os.Lstat(f.Out)
	p := &passiveImport{app: a, flags: f, isNew: errors.Is(err, fs.ErrNotExist), done: make(chan struct{})}
	if p.keyLog, err = os.Open(keyFile); err != nil {
		return nil, err
	}
	o.QueueBytes = importQueue
	if p.store, err = store.Create(f.Out, o); err != nil {
		return nil, errors.Join(err, p.keyLog.Close())
	}
	p.cancel = app.LimitMemory(importMemory)
	from := io.TeeReader(record.Follow(), countingWriter{&p.read})
	go func() {
		defer close(p.done)
		var printErr error
		p.summary, p.err = pcap.Import(ctx, from, pcap.Options{
			Store: p.store, Source: "passive", Connection: func(c pcap.Connection) { printErr = errors.Join(printErr, p.connection(c)) },
			Live: &pcap.Live{Wait: record.Wait, KeyLog: p.keyLog, Again: func() (io.Reader, error) { return record.Follow(), nil }},
		})
		p.err = errors.Join(p.err, printErr)
	}()
	return p, nil
}

// A countingWriter counts what is written to it.
type countingWriter struct{ n *atomic.Int64 }

func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return len(p), nil
}

// connection reports a connection that is over, or keeps it for the end.
func (p *passiveImport) connection(c pcap.Connection) error {
	if c.NoKey {
		p.noKey++
	}
	if p.flags.json {
		return p.app.Print(contract.NewConnection(c))
	}
	if len(c.Undecoded)+len(c.Gaps) > 0 && len(p.undecoded) < maxConnectionRows {
		p.undecoded = append(p.undecoded, c)
	}
	return nil
}

// finish waits until everything that was recorded is imported, and closes the capture.
func (p *passiveImport) finish(record *pcapng.Recording) error {
	tick := time.NewTicker(app.ProgressEvery)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-p.done:
			running = false
		case <-tick.C:
			p.app.Say("unwire: reading the packets: %d %%", 100*p.read.Load()/max(1, record.Size))
		}
	}
	p.cancel()
	return errors.Join(p.err, p.store.Close(), p.keyLog.Close())
}

// abandon ends the import if the command did not run. A new capture goes, if it has
// nothing in it.
func (p *passiveImport) abandon(record *pcapng.Recording) error {
	err := errors.Join(record.Finish(), p.finish(record))
	if err == nil && p.isNew && p.summary.Exchanges == 0 {
		err = os.Remove(p.flags.Out)
	}
	return err
}

// report says what was recorded, and what to do if nothing was.
func (p *passiveImport) report(ctx context.Context, on launch.Runtime) error {
	a, f := p.app, p.flags
	if f.json {
		if err := a.Print(contract.NewImportedPackets(p.summary)); err != nil {
			return err
		}
	}
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
		a.Say("unwire: hint: the command opened no connection over which anything was sent")
	}
	return nil
}
