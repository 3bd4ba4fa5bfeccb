package passive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
)

// A Leftover is the folder that a killed passive recorder left behind, with packets and the keys that decrypt
// them. This process has locked it.
type Leftover struct {
	// Dir is the path of the left-over folder.
	Dir string

	// Packets is the path to which the user wanted the packets to be written, for example with WritePackets; ""
	// for none.
	Packets string

	// Started is when the recording began.
	Started time.Time
	// Size is the size of the packet file in bytes; 0 if there are no packets.
	Size int64

	// folder is the locked folder that the killed recorder left behind.
	folder *folder
	// metadata are the options of the killed recording.
	metadata metadata
	// capture is the path where the capture is expected; "" if unknown.
	capture string
	// packets is the packet file in the folder; nil if there are no packets.
	packets *pcapng.Recording
}

// FindFor returns the leftover of the killed recorder that was recording to a capture. It returns nil if there
// is none, or if another process is recording or recovering the capture.
//
// Errors: a *RefusedError if the leftover is not safe to use.
func FindFor(capture string) (*Leftover, error) {
	if !supported {
		return nil, nil
	}
	path, err := readPointer(capture)
	if path == "" || err != nil {
		return nil, err
	}
	if !strings.HasPrefix(filepath.Base(path), folderPrefix) {
		return nil, &RefusedError{Refusal{path, "it is not named " + folderPrefix + "*"}}
	}
	f, why, err := inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// It was recovered by way of another path.
		return nil, removePointer(capture, path)
	case err != nil:
		return nil, err
	case why != "":
		return nil, &RefusedError{Refusal{path, why}}
	case f == nil:
		return nil, nil
	}
	return openLeftover(f, capture)
}

// Find returns the leftovers of killed recorders in dir, the folder for temporary files, and separately the
// folders that are not safe to use.
//
// Errors: those of reading dir.
func Find(dir string) (left []*Leftover, refused []Refusal, err error) {
	folders, refused, err := findFolders(dir)
	for _, f := range folders {
		l, oerr := openLeftover(f, "")
		if oerr != nil {
			refused = append(refused, Refusal{f.path, oerr.Error()})
			continue
		}
		left = append(left, l)
	}
	return left, refused, err
}

// A RefusedError is the error for a folder that a capture's pointer file names but that is not safe to use.
type RefusedError struct {
	// The embedded Refusal is the path of the folder with the reason why it is not safe to use.
	Refusal
}

// Error returns the path of the folder and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the folder %s is not recovered: %s", e.Path, e.Why)
}

// openLeftover reads the contents of a leftover folder. capture is the path of the capture, "" if unknown. If
// the folder contains no packets, only its removal remains to be done.
func openLeftover(f *folder, capture string) (*Leftover, error) {
	l := &Leftover{Dir: f.path, folder: f, capture: capture}
	if err := l.open(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// open reads the contents of the folder. It opens the packet file, if there is one.
func (l *Leftover) open() (err error) {
	l.metadata, err = l.folder.readMetadata()
	if errors.Is(err, fs.ErrNotExist) {
		// The recorder was killed before the first packet.
		return nil
	}
	if err != nil {
		return err
	}
	if l.capture == "" {
		l.capture = l.metadata.Output
	}
	l.Packets, l.Started = l.metadata.Packets, l.metadata.Started

	// The packets may be missing if the recorder was killed early.
	file, err := l.folder.open(packetsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.packets, err = pcapng.OpenRecording(file, l.metadata.Begin); err != nil || l.packets == nil {
		return err
	}
	l.Size = l.packets.Size
	return nil
}

// PacketsFile returns the path of the packet file, for callers that import it themselves.
func (l *Leftover) PacketsFile() string { return l.folder.file(packetsFile) }

// KeyLogFile returns the path of the TLS key log.
func (l *Leftover) KeyLogFile() string {
	if l.metadata.KeyLog != "" {
		return l.metadata.KeyLog
	}
	return l.folder.file(keysFile)
}

// openKeys opens the TLS key log, which is in the folder or where the user wanted it.
func (l *Leftover) openKeys() (*os.File, error) {
	if l.metadata.KeyLog != "" {
		return os.Open(l.metadata.KeyLog)
	}
	return l.folder.open(keysFile)
}

// RecoverOptions are the options for recovering the capture of a killed recorder.
type RecoverOptions struct {
	// Store are the options for writing the capture. KeepSecrets and MaxBody are replaced by those of the
	// recording.
	Store store.Options

	// Folder is the folder for a new capture, if that of the original no longer exists.
	Folder string

	// Progress, if set, is called with the number of imported bytes and the size of the packet file.
	Progress func(read, size int64)
}

// A RecoverResult describes what Leftover.Recover added to a capture.
type RecoverResult struct {
	// File is the path of the capture: the original one, or a new one if another capture has that path now.
	File string

	// Added is the number of exchanges that the capture lacked and that were added.
	Added int
	// Completed is the number of exchanges that the capture contained incompletely and that were recorded
	// again.
	Completed int

	// Summary contains the counts of the imported packets.
	Summary pcap.Summary
	// NoKey is the number of TLS connections that were not decrypted because their keys are missing.
	NoKey int
}

// Recover completes the capture of a killed recorder from its packets: exchanges that were cut off are
// completed, and missing ones are added. It can be called again after an error. The leftover stays until
// Remove. If Size is 0, there is nothing to recover.
//
// Errors: captures.ErrInUse if another process is recording to the capture; errors of reading the packets and
// keys, and of writing.
func (l *Leftover) Recover(ctx context.Context, o RecoverOptions) (r RecoverResult, err error) {
	if l.packets == nil {
		return r, nil
	}
	keys := new(pcap.KeyLog)
	keyLog, err := l.openKeys()
	if err != nil {
		return r, err
	}
	defer keyLog.Close()
	if err := keys.Read(keyLog); err != nil {
		return r, fmt.Errorf("%s: %w", keyLog.Name(), err)
	}

	// The capture may have been moved or replaced since.
	packets, err := l.packets.Reader()
	if err != nil {
		return r, err
	}
	if r.File, err = l.target(ctx, o.Folder); err != nil {
		return r, err
	}
	_, err = os.Lstat(r.File)
	isNew := errors.Is(err, fs.ErrNotExist)

	to, resumed, err := l.resume(ctx, r.File, o.Store)
	if err != nil {
		return r, err
	}
	r.Summary, err = pcap.Import(ctx, &progressReader{packets, 0, l.Size, o.Progress}, pcap.Options{
		Store: resumed, Keys: keys, Source: source, Connection: func(c pcap.Connection) {
			if c.NoKey {
				r.NoKey++
			}
		},
	})
	if errors.Is(err, io.ErrUnexpectedEOF) && r.Summary.Packets > 0 {
		// The recorder was killed while writing the last packet.
		err = nil
	}
	err = errors.Join(err, to.Close())
	if r.Added, r.Completed = resumed.Counts(); isNew && (err != nil || r.Added == 0) {
		// The new capture is empty or incomplete: it contains only this import.
		err = errors.Join(err, os.Remove(r.File))
	}
	return r, err
}

// resume opens the capture in file and returns it with a store.Resumption, to which all exchanges are recorded
// again but which adds only the data that the capture lacks.
func (l *Leftover) resume(ctx context.Context, file string, o store.Options) (*store.Store, *store.Resumption, error) {
	o.KeepSecrets, o.MaxBody, o.QueueBytes = l.metadata.KeepSecrets, l.metadata.MaxBody, queueBytes
	s, err := store.Create(file, o)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Resume(ctx, source, l.metadata.Started)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, r, nil
}

// target returns the path of the capture to be completed: the original path, or a new one in the folder
// fallback if the original capture is missing or another capture has its path.
func (l *Leftover) target(ctx context.Context, fallback string) (string, error) {
	switch _, err := os.Stat(l.capture); {
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(l.capture)); err == nil && info.IsDir() {
			return l.capture, nil
		}
		return l.freeName(fallback), nil
	case err != nil:
		return "", err
	}
	s, err := store.Open(l.capture, store.ReadOptions{})
	if err != nil {
		return "", err
	}
	defer s.Close()
	id, err := s.ID(ctx)
	if err != nil {
		return "", err
	}
	if len(id) > 0 && string(id) == string(l.metadata.Capture) {
		return l.capture, nil
	}
	return l.freeName(filepath.Dir(l.capture)), nil
}

// freeName returns an unused path for a new capture in a folder.
func (l *Leftover) freeName(folder string) string {
	stem := filepath.Join(folder, "unwire-recovered-"+l.metadata.Started.Local().Format("20060102-150405"))
	for n, name := 2, stem+".uwc"; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d.uwc", stem, n)
	}
}

// WritePackets writes the left-over packets as a pcapng file, with the TLS secrets that decrypt them.
func (l *Leftover) WritePackets(out io.Writer) error {
	keyLog, err := l.openKeys()
	if err != nil {
		return err
	}
	defer keyLog.Close()
	return l.packets.WriteWithSecrets(out, keyLog)
}

// Remove deletes the left-over packets and keys.
func (l *Leftover) Remove() error {
	l.closePackets()
	if err := l.folder.remove(); err != nil {
		return err
	}
	var err error
	for _, capture := range []string{l.capture, l.metadata.Output} {
		if capture != "" {
			err = errors.Join(err, removePointer(capture, l.Dir))
		}
	}
	return err
}

// Close releases the folder's lock, and keeps the files for a later recovery.
func (l *Leftover) Close() {
	l.closePackets()
	l.folder.close()
}

// closePackets closes the packet file, if it is open.
func (l *Leftover) closePackets() {
	if l.packets != nil {
		_ = l.packets.Close()
		l.packets = nil
	}
}

// A progressReader reads from r and calls report with the bytes read so far (done) and the total size.
type progressReader struct {
	// r is the reader of the packets.
	r io.Reader
	// done is the number of bytes read so far.
	done int64
	// size is the total number of bytes to read.
	size int64
	// report is called after reads with the number of bytes read so far and the total.
	report func(read, size int64)
}

// Read reads from r and reports the progress.
func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if p.done += int64(n); p.report != nil {
		p.report(p.done, p.size)
	}
	return n, err
}
