// Package series is a capture that goes on in further files when one is large or old, or
// that keeps the newest traffic only. The command that records uses it.
package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/captures/series/internal/ring"
	"unwire/captures/store"
)

// Options says when a Series goes on in another file. The zero value is never.
type Options struct {
	store.Options

	// MaxBytes is the size of the file, with its log, at which the next is begun; 0: none.
	MaxBytes int64

	MaxAge time.Duration // after its first exchange; 0: none

	// MaxTotal makes the series a ring of the newest traffic: all files together take no
	// more than this, in bytes, and the oldest are removed. It limits MaxBytes and MaxBody
	// to a sixteenth of it. 0: nothing is removed. It is MinTotal or more.
	MaxTotal int64

	Rotated func(path string) // nil, or told of each further file
}

// A Series is a capture that goes on in further files when one is large or old
// enough: NAME.uwc, NAME-2.uwc, NAME-3.uwc. An exchange is in one file whole:
// those that are running when the next file is begun end in the old one, which
// is closed after the last of them. A secret's placeholder differs from file to
// file.
//
// Limits: a file grows past MaxBytes by what its running exchanges add, and the
// number of those bounds the files that are open. Names that are taken are skipped.
type Series struct {
	o Options

	mu      sync.Mutex
	base    string // the path without its extension
	ext     string
	n       int // of the current file
	current *store.Store
	since   time.Time             // of the first exchange in it; zero before
	old     map[*store.Store]bool // not closed yet
	closing sync.WaitGroup
	errs    []error
	files   []string
	closed  map[string]bool // of files
	failed  error           // why there is no next file

	// looked is when Begin looked at the size of the ring, in nanoseconds since 1970.
	looked atomic.Int64

	// stopRing ends the removal of old files, which ringEnded waits for.
	stop      sync.Once
	rotated   chan struct{} // there is a new file
	stopRing  chan struct{}
	ringEnded sync.WaitGroup
}

// Create begins a series at path, as store.Create does.
func Create(path string, o Options) (*Series, error) {
	if err := o.beginRing(); err != nil {
		return nil, err
	}
	current, err := store.Create(path, o.Options)
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	s := &Series{
		o: o, base: strings.TrimSuffix(path, ext), ext: ext, n: 1,
		current: current, old: make(map[*store.Store]bool), files: []string{path},
		closed: make(map[string]bool), stopRing: make(chan struct{}), rotated: make(chan struct{}, 1),
	}
	if o.MaxTotal > 0 {
		s.ringEnded.Go(func() { ring.Keep(ringFiles{s}, o.MaxTotal, s.rotated, s.stopRing) })
	}
	return s, nil
}

// Begin is store.Store.Begin in the current file, or in the next where it is time
// for that.
func (s *Series) Begin(ex captures.Exchange) (captures.Recording, error) {
	s.makeRoom()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	if s.due() {
		if s.failed = s.rotate(); s.failed != nil {
			s.errs = append(s.errs, s.failed)
			if s.o.Failed != nil {
				s.o.Failed(s.failed)
			}
			return nil, s.failed
		}
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	return s.current.Begin(ex)
}

// Current is the file that exchanges go to now.
func (s *Series) Current() *store.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Files are the paths of all files so far, without those that a ring has removed.
func (s *Series) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.files...)
}

// due reports whether the current file has had enough. One without an exchange
// never has.
func (s *Series) due() bool {
	if s.since.IsZero() || s.current.Err() != nil {
		return false
	}
	if s.o.MaxAge > 0 && time.Since(s.since) >= s.o.MaxAge {
		return true
	}
	return s.o.MaxBytes > 0 && fileSize(s.current.Path)+fileSize(s.current.Path+"-wal") >= s.o.MaxBytes
}

// rotate begins the next file. It is called with mu held.
func (s *Series) rotate() error {
	path := s.next()
	o := s.o.Options
	if r := s.current.Redactor; r != nil {
		o.Redactor = r // with the secrets that it has met
	}
	next, err := store.Create(path, o)
	if err != nil {
		return fmt.Errorf("the next file: %w", err)
	}
	last := s.current
	s.current, s.since = next, time.Time{}
	s.files = append(s.files, path)
	s.old[last] = true
	s.closing.Add(1)
	last.WhenDrained(func() {
		defer s.closing.Done()
		s.closeOld(last)
	})
	select {
	case s.rotated <- struct{}{}:
	default: // a signal waits already, or this is no ring
	}
	if s.o.Rotated != nil {
		s.o.Rotated(path)
	}
	return nil
}

// next is the first free name.
func (s *Series) next() string {
	for {
		s.n++
		path := fmt.Sprintf("%s-%d%s", s.base, s.n, s.ext)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
}

func (s *Series) closeOld(st *store.Store) {
	s.mu.Lock()
	open := s.old[st]
	delete(s.old, st)
	s.mu.Unlock()
	if !open {
		return
	}
	err := st.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	s.closed[st.Path] = true
}

// Close ends what is running, as store.Store.Close does, and closes all files.
//
// Errors: those that stopped the recording of any of them.
func (s *Series) Close() error {
	s.stop.Do(func() { close(s.stopRing) })
	s.ringEnded.Wait()
	s.mu.Lock()
	var open []*store.Store
	for st := range s.old {
		open = append(open, st)
	}
	s.mu.Unlock()
	for _, st := range open {
		s.closeOld(st)
	}
	err := s.current.Close()
	s.closing.Wait()
	if s.o.MaxTotal > 0 {
		ring.Trim(ringFiles{s}, s.o.MaxTotal, s.o.MaxTotal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(s.errs, err)...)
}

// fileSize is 0 for a file that is not there.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
