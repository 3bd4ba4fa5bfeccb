package pcapng

import (
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"time"
)

const (
	flushEvery = 100 * time.Millisecond
	maxKeyLog  = 256 << 20 // bytes that are put into a secrets block

	recordingComment = "recorded by 'unwire capture --passive' in the command's own network namespace"
)

// A Recording is a file of packets that are recorded while a command runs. It has no
// secrets, which are known in the end only.
type Recording struct {
	// Begin is where its packets begin, in bytes.
	Begin int64

	// Size is how many bytes it has, once it is finished.
	Size int64

	file *os.File

	mu     sync.Mutex
	w      *writer
	failed error
	stop   chan struct{} // ends the flushing
	ended  sync.WaitGroup

	// finished is closed when nothing will be added any more.
	finished chan struct{}
	finish   sync.Once
}

// CreateRecording begins a recording in a new file that its owner alone can read.
func CreateRecording(name string) (*Recording, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(f, recordingComment)
	if err == nil {
		err = w.flush()
	}
	r := &Recording{file: f, w: w, stop: make(chan struct{}), finished: make(chan struct{})}
	if err == nil {
		r.Begin, err = f.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	stop := r.stop
	r.ended.Go(func() { r.flushing(stop) })
	return r, nil
}

// OpenRecording returns a recording that was made before, whose packets begin at
// begin; nil if it has none, and then the file is closed.
func OpenRecording(file *os.File, begin int64) (*Recording, error) {
	info, err := file.Stat()
	if err != nil || info.Size() <= begin {
		return nil, errors.Join(err, file.Close())
	}
	return &Recording{file: file, Begin: begin, Size: info.Size()}, nil
}

// flushing writes from time to time what was added, so that little is lost if
// the program is killed.
func (r *Recording) flushing(stop <-chan struct{}) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			r.flush()
		}
	}
}

func (r *Recording) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.w.flush()
	}
}

// Packet adds a packet of that length, of which data is the beginning. After an error
// nothing more is added, and Finish returns it.
func (r *Recording) Packet(t time.Time, data []byte, length int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.w.packet(t, data, length)
	}
}

// Finish ends the recording of packets.
func (r *Recording) Finish() error {
	r.stopFlushing()
	r.flush()
	at, err := r.file.Seek(0, io.SeekCurrent)
	r.Size = at
	r.finish.Do(func() { close(r.finished) })
	return errors.Join(r.failed, err)
}

// Follow returns a reader of the file from its beginning, which may be used while packets
// are added. At the end of the file as it is now it returns io.EOF; after Wait there may be more.
func (r *Recording) Follow() io.Reader { return io.NewSectionReader(r.file, 0, math.MaxInt64) }

// Wait waits for packets, for d at most, and has those that were added by then written for
// Follow. It returns false when none will be added any more.
func (r *Recording) Wait(d time.Duration) bool {
	select {
	case <-r.finished:
		return false
	case <-time.After(d):
		r.flush()
		return true
	}
}

func (r *Recording) stopFlushing() {
	if r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
	r.ended.Wait()
}

// Close closes the file.
func (r *Recording) Close() error {
	r.stopFlushing()
	return r.file.Close()
}

// Reader reads the file from its beginning.
func (r *Recording) Reader() (io.Reader, error) {
	_, err := r.file.Seek(0, io.SeekStart)
	return r.file, err
}

// WriteWithSecrets writes the packets as a file, with the secrets that open them
// before them, as readers want it.
//
// Limits: 256 MiB of the key log.
func (r *Recording) WriteWithSecrets(out io.Writer, keyLog io.Reader) error {
	keys, err := io.ReadAll(io.LimitReader(keyLog, maxKeyLog))
	if err != nil {
		return err
	}
	w, err := newWriter(out, recordingComment)
	if err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if len(keys) > 0 {
		if err := w.secrets(keys); err != nil {
			return err
		}
	}
	_, err = io.Copy(out, io.NewSectionReader(r.file, r.Begin, r.Size-r.Begin))
	return err
}
