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
	// flushInterval is the time between writes of buffered packets to the file.
	flushInterval = 100 * time.Millisecond
	// maxKeyLog limits the key log that is written as a secrets block, in bytes.
	maxKeyLog = 256 << 20

	// recordingComment is the comment in the files.
	recordingComment = "recorded by 'unwire capture --passive' in the command's own network namespace"
)

// A Recording is a pcapng file to which packets are added while a command runs. It contains no TLS secrets,
// because these are complete only at the end.
type Recording struct {
	// Begin is the offset of the first packet in the file, in bytes.
	Begin int64

	// Size is the size of the file in bytes; it is known only once no more packets are added.
	Size int64

	// file is the packet file, open for reading and writing.
	file *os.File

	// mu guards w and failed.
	mu sync.Mutex
	// w writes the packets to the file.
	w *writer

	// failed is the first error of writing a packet; nil if there was none.
	failed error
	// stop is closed to end the goroutine that flushes the file periodically; nil if it is not running.
	stop chan struct{}
	// flushEnded waits for the end of the goroutine that flushes the file periodically.
	flushEnded sync.WaitGroup

	// finished is closed when no more packets will be added.
	finished chan struct{}
	// finish makes sure that finished is closed only once.
	finish sync.Once
}

// CreateRecording creates a pcapng file that only its owner can read, for packets to be added.
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
	r.flushEnded.Go(func() { r.flushPeriodically(stop) })
	return r, nil
}

// OpenRecording returns an existing, finished recording in file, whose packets begin at the offset begin. If it
// contains no packets, OpenRecording closes the file and returns nil.
func OpenRecording(file *os.File, begin int64) (*Recording, error) {
	info, err := file.Stat()
	if err != nil || info.Size() <= begin {
		return nil, errors.Join(err, file.Close())
	}
	return &Recording{file: file, Begin: begin, Size: info.Size()}, nil
}

// flushPeriodically writes the buffered packets at intervals, so that little is lost if the process is killed.
func (r *Recording) flushPeriodically(stop <-chan struct{}) {
	tick := time.NewTicker(flushInterval)
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

// flush writes the buffered packets to the file.
func (r *Recording) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.w.flush()
	}
}

// Packet adds an Ethernet frame captured at t. length is its original length in bytes; data may be only its
// beginning. After an error, Packet does nothing and Finish returns the error.
func (r *Recording) Packet(t time.Time, data []byte, length int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.w.packet(t, data, length)
	}
}

// Finish writes the buffered packets, ends the recording and returns the first error of writing.
func (r *Recording) Finish() error {
	r.stopFlushing()
	r.flush()
	at, err := r.file.Seek(0, io.SeekCurrent)
	r.Size = at
	r.finish.Do(func() { close(r.finished) })
	return errors.Join(r.failed, err)
}

// Follow returns a reader of the file from its beginning, which can be used while packets are added. It returns
// io.EOF at the current end of the file; after Wait, there may be more.
func (r *Recording) Follow() io.Reader { return io.NewSectionReader(r.file, 0, math.MaxInt64) }

// Wait waits for d, and makes the packets added so far visible to Follow. It returns false without waiting when
// no more packets will be added.
func (r *Recording) Wait(d time.Duration) bool {
	select {
	case <-r.finished:
		return false
	case <-time.After(d):
		r.flush()
		return true
	}
}

// stopFlushing stops flushPeriodically and waits for its end.
func (r *Recording) stopFlushing() {
	if r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
	r.flushEnded.Wait()
}

// Close closes the pcapng file.
func (r *Recording) Close() error {
	r.stopFlushing()
	return r.file.Close()
}

// Reader returns a reader of the finished file, starting at its beginning.
func (r *Recording) Reader() (io.Reader, error) {
	_, err := r.file.Seek(0, io.SeekStart)
	return r.file, err
}

// WriteWithSecrets writes the packets as a pcapng file in which the secrets in keyLog precede the packets, as
// readers require.
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
