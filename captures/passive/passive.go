// Package passive records what a command sends and receives from its packets: nothing stands
// in the middle. Start makes exchanges of the packets while they come in, in a capture (.uwc)
// that others can read meanwhile. The command logs its TLS keys to a file; RunPassive of
// package launch runs it so.
//
//	r, err := passive.Start(ctx, os.TempDir(), passive.Options{Output: "F.uwc"})
//	...
//	launch.RunPassive(ctx, o, launch.Passive{KeyLog: r.KeyLog(), Packet: r.Packet})
//	err = r.Stop()
//	summary, err := r.Finish(nil)
//	err = r.Remove()
//
// Packets and keys are in a folder of their own until Remove. If the recorder is killed, they
// stay: the file F.uwc-packets next to the capture names their folder. Of finds it for a
// capture, Find finds all of them; Recover completes the capture and Remove deletes what is
// left. The exchanges keep their numbers.
//
// The lock of a folder is the system's: one file has it for Unix, one for Windows. The
// commands capture and doctor use this package, and all that read captures.
package passive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
)

const (
	// source is what exchanges say recorded them.
	source = "passive"

	// queueBytes may wait for the disk: packets are in a file, and can wait.
	queueBytes = 16 << 20

	// progressEvery is how often progress is reported.
	progressEvery = 100 * time.Millisecond
)

// Options say how a command is recorded.
type Options struct {
	// Output is the capture, which is created or added to.
	Output string

	// Store says how the capture is written.
	Store store.Options

	// KeyLog is the absolute path of an existing file that the command writes the secrets of
	// its TLS sessions to; "" is one that is removed with the packets.
	KeyLog string

	// Packets is the file to which the caller will write the packets in the end, so that it
	// is known if the recorder is killed; "" for none.
	Packets string

	// Target, if set, returns what takes the exchanges before the capture does.
	Target func(captures.Target) captures.Target

	// Connection, if set, is called for each connection that is over.
	Connection func(pcap.Connection)
}

// A Recording is a command that is being recorded.
type Recording struct {
	options Options
	isNew   bool // the capture was not there before

	folder  *folder
	keyFile string
	keyLog  *os.File
	packets *pcapng.Recording
	store   *store.Store
	read    atomic.Int64 // bytes of packets

	// done is closed when the import has ended. What follows is set by then.
	done    chan struct{}
	summary pcap.Summary
	err     error
}

// Start creates the capture, or opens it to add to it, and begins to make exchanges of the
// packets. They are kept in a folder in dir, that for temporary files. The import of packets
// ends with ctx.
//
// Errors: those of store.Create, and of writing to dir.
func Start(ctx context.Context, dir string, o Options) (r *Recording, err error) {
	r = &Recording{options: o, done: make(chan struct{})}
	if r.folder, err = createFolder(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.closeFiles(), r.Remove())
		}
	}()
	r.keyFile = o.KeyLog
	if r.keyFile == "" {
		r.keyFile = r.folder.file(keysFile)
		if err := os.WriteFile(r.keyFile, nil, 0o600); err != nil {
			return nil, err
		}
	}
	if r.keyLog, err = os.Open(r.keyFile); err != nil {
		return nil, err
	}
	if r.packets, err = pcapng.CreateRecording(r.folder.file(packetsFile)); err != nil {
		return nil, err
	}
	if err := r.createCapture(ctx); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.done)
		r.summary, r.err = r.importPackets(ctx)
	}()
	return r, nil
}

// createCapture creates the capture, and notes what to do if this process is killed.
func (r *Recording) createCapture(ctx context.Context) error {
	o := r.options
	_, err := os.Lstat(o.Output)
	r.isNew = errors.Is(err, fs.ErrNotExist)
	o.Store.QueueBytes = queueBytes
	if r.store, err = store.Create(o.Output, o.Store); err != nil {
		return err
	}
	a := about{V: 1, Started: time.Now(), Begin: r.packets.Begin, KeepSecrets: o.Store.KeepSecrets, MaxBody: o.Store.MaxBody, KeyLog: o.KeyLog}
	if a.Output, err = filepath.Abs(o.Output); err != nil {
		return err
	}
	if o.Packets != "" {
		if a.Packets, err = filepath.Abs(o.Packets); err != nil {
			return err
		}
	}
	if a.Capture, err = r.store.ID(ctx); err != nil {
		return err
	}
	if err := r.folder.writeAbout(a); err != nil {
		return err
	}
	return writePointer(o.Output, r.folder.path)
}

func (r *Recording) importPackets(ctx context.Context) (pcap.Summary, error) {
	var to captures.Target = r.store
	if r.options.Target != nil {
		to = r.options.Target(to)
	}
	return pcap.Import(ctx, io.TeeReader(r.packets.Follow(), counter{&r.read}), pcap.Options{
		Store: to, Source: source, Connection: r.options.Connection,
		Live: &pcap.Live{Wait: r.packets.Wait, KeyLog: r.keyLog, Again: func() (io.Reader, error) { return r.packets.Follow(), nil }},
	})
}

// A counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// KeyLog is the file that the command is to write the secrets of its TLS sessions to, an
// absolute path.
func (r *Recording) KeyLog() string { return r.keyFile }

// Packet adds a packet of that length, of which data is the beginning, as an Ethernet frame.
func (r *Recording) Packet(t time.Time, data []byte, length int) { r.packets.Packet(t, data, length) }

// Stop ends the recording of packets. It returns why that failed, if it did: what was
// recorded before is imported.
func (r *Recording) Stop() error { return r.packets.Finish() }

// Size is how many bytes the packets have, once they are stopped.
func (r *Recording) Size() int64 { return r.packets.Size }

// Finish waits until all packets are imported, and closes the capture. Progress, if set, is
// called meanwhile, with how many bytes of the packets were read.
func (r *Recording) Finish(progress func(read, size int64)) (pcap.Summary, error) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-r.done:
			running = false
		case <-tick.C:
			if progress != nil {
				progress(r.read.Load(), r.packets.Size)
			}
		}
	}
	err := errors.Join(r.err, r.store.Close())
	r.store = nil
	return r.summary, err
}

// Abandon ends a recording whose command did not run. A new capture is removed, if it has
// nothing in it.
func (r *Recording) Abandon() error {
	err := r.Stop()
	sum, ferr := r.Finish(nil)
	if err = errors.Join(err, ferr); err == nil && r.isNew && sum.Exchanges == 0 {
		err = os.Remove(r.options.Output)
	}
	return err
}

// WritePackets writes the packets as a pcapng file, with the secrets that open them.
func (r *Recording) WritePackets(out io.Writer) error {
	keys, err := os.Open(r.keyFile)
	if err != nil {
		return err
	}
	defer keys.Close()
	return r.packets.WriteWithSecrets(out, keys)
}

// Remove removes the packets, and the keys if they have no file of their own.
func (r *Recording) Remove() error {
	err := errors.Join(r.closeFiles(), r.folder.remove())
	if err != nil {
		return err
	}
	return removePointer(r.options.Output, r.folder.path)
}

// closeFiles closes what is open.
func (r *Recording) closeFiles() error {
	var errs []error
	if r.store != nil {
		errs = append(errs, r.store.Close())
		r.store = nil
	}
	if r.packets != nil {
		errs = append(errs, r.packets.Close())
		r.packets = nil
	}
	if r.keyLog != nil {
		errs = append(errs, r.keyLog.Close())
		r.keyLog = nil
	}
	return errors.Join(errs...)
}
