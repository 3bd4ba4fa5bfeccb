// Package passive records the traffic of a command from its packets, without a proxy. Start converts the packets
// to exchanges of a capture (.uwc) while they arrive; other processes can read the capture meanwhile. The
// command must log its TLS keys to a file; RunPassive of package launch runs it that way.
//
//	r, err := passive.Start(ctx, os.TempDir(), passive.Options{Output: "F.uwc"})
//	...
//	launch.RunPassive(ctx, o, launch.Passive{KeyLog: r.KeyLog(), Packet: r.Packet})
//	err = r.Stop()
//	summary, err := r.Finish(nil)
//	err = r.Remove()
//
// Packets and keys are kept in a temporary folder until Remove. If the recorder is killed, they remain, and the
// file F.uwc-packets next to the capture names their folder. FindFor finds the leftover of one capture, and
// Find finds all leftovers in a folder. Recover completes the capture, and Remove deletes the leftover. Exchanges keep
// their IDs.
//
// The command capture records with this package; doctor, and all commands that read captures, look for
// leftovers.
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
	// source is the value of Exchange.Source for exchanges recorded passively.
	source = "passive"

	// queueBytes is the size of the capture's write queue. It is small, because packets can wait in their file.
	queueBytes = 16 << 20

	// progressInterval is the time between progress reports.
	progressInterval = 100 * time.Millisecond
)

// Options are the options for recording packets with Start.
type Options struct {
	// Output is the path of the capture, which is created or appended to.
	Output string

	// Store holds the options for writing the capture.
	Store store.Options

	// KeyLog is the absolute path of an existing file to which the command writes its TLS keys; ""
	// means a temporary file that Remove deletes.
	KeyLog string

	// Packets is the file to which the caller will write the packets at the end; "" for none. It is stored, so
	// that a later process can write it if the recorder is killed.
	Packets string

	// Target, if set, is called with the capture and returns the target that receives the exchanges instead,
	// such as a filter that passes them on.
	Target func(captures.Target) captures.Target

	// Connection, if set, is called with the report of each finished connection.
	Connection func(pcap.Connection)
}

// A Recording records the packets and TLS keys of a running command in a folder for temporary files, and
// converts them to exchanges of a capture at the same time.
type Recording struct {
	// options are the options with which the recording was started.
	options Options
	// isNew means that this recording created the capture.
	isNew bool

	// folder contains the packets and, unless the user named a file, the key log.
	folder *folder

	// keyFile is the path of the key log to which the command writes its TLS keys.
	keyFile string
	// keyLog is the key log with the command's TLS keys, open for reading.
	keyLog *os.File
	// packets is the pcapng file in the temporary folder to which captured packets are added.
	packets *pcapng.Recording
	// store is the capture in which the exchanges are recorded.
	store *store.Store
	// bytesRead is the number of bytes of the packet file that were imported.
	bytesRead atomic.Int64

	// done is closed when the import of the packets has ended.
	done chan struct{}
	// summary contains the counts of the import; it is valid once done is closed.
	summary pcap.Summary
	// err is the error of the import; it is valid once done is closed.
	err error
}

// Start creates or opens the capture, and starts to convert packets, which the caller adds with Packet, to
// exchanges. The packets are stored in a new folder below dir, the folder for temporary files. The import ends
// after Stop, or when ctx ends.
//
// Errors: those of store.Create, and of writing to dir.
func Start(ctx context.Context, dir string, o Options) (*Recording, error) {
	r := &Recording{options: o, done: make(chan struct{})}
	var err error
	if r.folder, err = createFolder(dir); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Remove())
	}

	// Import while packets arrive, so that the capture can be read.
	go func() {
		defer close(r.done)
		r.summary, r.err = r.importPackets(ctx)
	}()
	return r, nil
}

// open opens the key log and the capture, and creates the file for the packets. After an error, Remove closes what
// was opened.
func (r *Recording) open(ctx context.Context) (err error) {
	// The command needs a key log, even if the user wants none.
	r.keyFile = r.options.KeyLog
	if r.keyFile == "" {
		r.keyFile = r.folder.file(keysFile)
		if err := os.WriteFile(r.keyFile, nil, 0o600); err != nil {
			return err
		}
	}
	if r.keyLog, err = os.Open(r.keyFile); err != nil {
		return err
	}
	if r.packets, err = pcapng.CreateRecording(r.folder.file(packetsFile)); err != nil {
		return err
	}
	return r.createCapture(ctx)
}

// createCapture opens the capture, and writes the files that are needed to recover it after a crash.
func (r *Recording) createCapture(ctx context.Context) error {
	o := r.options
	_, err := os.Lstat(o.Output)
	r.isNew = errors.Is(err, fs.ErrNotExist)
	o.Store.QueueBytes = queueBytes
	if r.store, err = store.Create(o.Output, o.Store); err != nil {
		return err
	}
	a := metadata{V: 1, Started: time.Now(), Begin: r.packets.Begin, KeepSecrets: o.Store.KeepSecrets, MaxBody: o.Store.MaxBody, KeyLog: o.KeyLog}
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
	if err := r.folder.writeMetadata(a); err != nil {
		return err
	}
	return writePointer(o.Output, r.folder.path)
}

// importPackets converts packets to exchanges until all recorded packets have been read.
func (r *Recording) importPackets(ctx context.Context) (pcap.Summary, error) {
	var to captures.Target = r.store
	if r.options.Target != nil {
		to = r.options.Target(to)
	}
	return pcap.Import(ctx, io.TeeReader(r.packets.Follow(), byteCounter{&r.bytesRead}), pcap.Options{
		Store: to, Source: source, Connection: r.options.Connection,
		Live: &pcap.Live{Wait: r.packets.Wait, KeyLog: r.keyLog, Again: func() (io.Reader, error) { return r.packets.Follow(), nil }},
	})
}

// A byteCounter is an io.Writer that adds the number of written bytes to n.
type byteCounter struct {
	// n is the counter to which the number of written bytes is added.
	n *atomic.Int64
}

// Write counts the bytes of p.
func (c byteCounter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// KeyLog returns the absolute path of the file to which the command must write its TLS secrets (SSLKEYLOGFILE).
func (r *Recording) KeyLog() string { return r.keyFile }

// Packet adds a captured Ethernet frame. length is its original length in bytes; data may be only its
// beginning.
func (r *Recording) Packet(t time.Time, data []byte, length int) { r.packets.Packet(t, data, length) }

// Stop ends the recording of packets. It returns the error that interrupted the recording earlier, if any;
// packets recorded before that error are imported nevertheless.
func (r *Recording) Stop() error { return r.packets.Finish() }

// Size returns the size of the packet file in bytes. It must be called after Stop.
func (r *Recording) Size() int64 { return r.packets.Size }

// Finish waits until all packets are imported, and closes the capture. progress, if set, is called every 100 ms
// with the number of imported bytes and the size of the packet file.
func (r *Recording) Finish(progress func(read, size int64)) (pcap.Summary, error) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-r.done:
			running = false
		case <-tick.C:
			if progress != nil {
				progress(r.bytesRead.Load(), r.packets.Size)
			}
		}
	}
	err := errors.Join(r.err, r.store.Close())
	r.store = nil
	return r.summary, err
}

// Abandon ends a recording whose command could not be started. It deletes the capture if that is new and empty.
func (r *Recording) Abandon() error {
	err := r.Stop()
	sum, ferr := r.Finish(nil)
	if err = errors.Join(err, ferr); err == nil && r.isNew && sum.Exchanges == 0 {
		err = os.Remove(r.options.Output)
	}
	return err
}

// WritePackets writes the recorded packets as a pcapng file, with the TLS secrets that decrypt them.
func (r *Recording) WritePackets(out io.Writer) error {
	keys, err := os.Open(r.keyFile)
	if err != nil {
		return err
	}
	defer keys.Close()
	return r.packets.WriteWithSecrets(out, keys)
}

// Remove deletes the folder with the packets, and the key log unless the user named its file.
func (r *Recording) Remove() error {
	err := errors.Join(r.closeFiles(), r.folder.remove())
	if err != nil {
		return err
	}
	return removePointer(r.options.Output, r.folder.path)
}

// closeFiles closes all open files of the recording.
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
