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

// A Left is what a recorder that was killed has left: packets, and the keys that open them.
// This process has locked it.
type Left struct {
	// Dir is its folder.
	Dir string

	// Packets is the file to which the packets were to be written in the end, and which
	// WritePackets can write now; "" for none.
	Packets string

	// Started is when the recording began, and Size how many bytes the packets have: 0 if
	// there are none.
	Started time.Time
	Size    int64

	folder  *folder
	about   about
	capture string // where it is expected; "" if that is not known
	packets *pcapng.Recording
}

// Of returns what a recorder that was killed has left of a capture; nil if there is nothing,
// or if it is being recorded or recovered.
//
// Errors: a *RefusedError if what is left must not be used.
func Of(capture string) (*Left, error) {
	if !supported {
		return nil, nil
	}
	path, err := readPointer(capture)
	if path == "" || err != nil {
		return nil, err
	}
	if !strings.HasPrefix(filepath.Base(path), prefix) {
		return nil, &RefusedError{Refusal{path, "it is not named " + prefix + "*"}}
	}
	f, why, err := inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, removePointer(capture, path) // it was recovered from elsewhere
	case err != nil:
		return nil, err
	case why != "":
		return nil, &RefusedError{Refusal{path, why}}
	case f == nil:
		return nil, nil
	}
	return openLeft(f, capture)
}

// Find returns what recorders that were killed have left in dir, the folder for temporary
// files, and folders with the name of such that are left alone.
//
// Errors: of reading dir.
func Find(dir string) (left []*Left, refused []Refusal, err error) {
	folders, refused, err := findFolders(dir)
	for _, f := range folders {
		l, oerr := openLeft(f, "")
		if oerr != nil {
			refused = append(refused, Refusal{f.path, oerr.Error()})
			continue
		}
		left = append(left, l)
	}
	return left, refused, err
}

// A RefusedError says why a folder that a capture names is left alone.
type RefusedError struct{ Refusal }

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is left alone: %s", e.Path, e.Why) }

// openLeft opens what is left in a folder. Without packets there is nothing but a folder to
// be removed.
func openLeft(f *folder, capture string) (l *Left, err error) {
	l = &Left{Dir: f.path, folder: f, capture: capture}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	if l.about, err = f.about(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // killed before there was a packet
		}
		return l, err
	}
	if l.capture == "" {
		l.capture = l.about.Output
	}
	l.Packets, l.Started = l.about.Packets, l.about.Started
	file, err := f.open(packetsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if l.packets, err = pcapng.OpenRecording(file, l.about.Begin); err != nil || l.packets == nil {
		return l, err
	}
	l.Size = l.packets.Size
	return l, nil
}

// PacketsFile is the file with the packets, for who imports them otherwise.
func (l *Left) PacketsFile() string { return l.folder.file(packetsFile) }

// KeyLogFile is the file with the keys.
func (l *Left) KeyLogFile() string {
	if l.about.KeyLog != "" {
		return l.about.KeyLog
	}
	return l.folder.file(keysFile)
}

// openKeys opens the keys that the command has logged.
func (l *Left) openKeys() (*os.File, error) {
	if l.about.KeyLog != "" {
		return os.Open(l.about.KeyLog)
	}
	return l.folder.open(keysFile)
}

// RecoverOptions say how a capture is completed.
type RecoverOptions struct {
	// Store says how the capture is written; how it is redacted, and how much of bodies is
	// stored, is as it was to be.
	Store store.Options

	// Folder is where a new capture is made, if the folder of the old one is gone.
	Folder string

	// Progress, if set, is called with how many bytes of the packets were read.
	Progress func(read, size int64)
}

// A Recovered says what became of what was left.
type Recovered struct {
	// File is the capture. It is the one that was being recorded, or a new one where that
	// name is another capture's.
	File string

	// Added counts exchanges that the capture did not have, Completed those of which it had
	// a part.
	Added, Completed int

	// Summary is of the packets. NoKey counts connections without keys.
	Summary pcap.Summary
	NoKey   int
}

// Recover makes exchanges of what is left, and has the capture complete: exchanges that were
// cut off get what is missing, and those that it does not have are added. It can be called
// again after an error. What is left stays until Remove. If Size is 0, there is nothing to
// be recovered.
//
// Errors: captures.ErrInUse if the capture is being recorded to; of reading the packets and
// keys; of writing.
func (l *Left) Recover(ctx context.Context, o RecoverOptions) (r Recovered, err error) {
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
		err = nil // the last packet was being written
	}
	err = errors.Join(err, to.Close())
	if r.Added, r.Completed = resumed.Counts(); isNew && (err != nil || r.Added == 0) {
		err = errors.Join(err, os.Remove(r.File)) // it has this import alone
	}
	return r, err
}

// resume opens the capture, to record into it what it does not have.
func (l *Left) resume(ctx context.Context, file string, o store.Options) (*store.Store, *store.Resumption, error) {
	o.KeepSecrets, o.MaxBody, o.QueueBytes = l.about.KeepSecrets, l.about.MaxBody, queueBytes
	s, err := store.Create(file, o)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Resume(ctx, source, l.about.Started)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, r, nil
}

// target returns the capture that is to be completed, or a new name if there is none, or
// another one at its place.
func (l *Left) target(ctx context.Context, fallback string) (string, error) {
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
	if len(id) > 0 && string(id) == string(l.about.Capture) {
		return l.capture, nil
	}
	return l.freeName(filepath.Dir(l.capture)), nil
}

// freeName is the path of a new capture in a folder.
func (l *Left) freeName(folder string) string {
	stem := filepath.Join(folder, "unwire-recovered-"+l.about.Started.Local().Format("20060102-150405"))
	for n, name := 2, stem+".uwc"; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d.uwc", stem, n)
	}
}

// WritePackets writes the packets as a pcapng file, with the secrets that open them.
func (l *Left) WritePackets(out io.Writer) error {
	keyLog, err := l.openKeys()
	if err != nil {
		return err
	}
	defer keyLog.Close()
	return l.packets.WriteWithSecrets(out, keyLog)
}

// Remove removes what is left.
func (l *Left) Remove() error {
	l.closePackets()
	if err := l.folder.remove(); err != nil {
		return err
	}
	var err error
	for _, capture := range []string{l.capture, l.about.Output} {
		if capture != "" {
			err = errors.Join(err, removePointer(capture, l.Dir))
		}
	}
	return err
}

// Close leaves everything as it is, for others to recover.
func (l *Left) Close() {
	l.closePackets()
	l.folder.close()
}

func (l *Left) closePackets() {
	if l.packets != nil {
		_ = l.packets.Close()
		l.packets = nil
	}
}

// A progressReader reports how much was read.
type progressReader struct {
	r          io.Reader
	done, size int64
	report     func(read, size int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if p.done += int64(n); p.report != nil {
		p.report(p.done, p.size)
	}
	return n, err
}
