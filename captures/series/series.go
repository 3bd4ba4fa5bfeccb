// Package series records one capture into several files: the next file begins when the current one is too large
// or too old. As a ring, it removes the oldest files and keeps only the newest traffic. `unwire capture` uses
// it.
//
//	s, err := series.Create("a.uwc", series.Options{MaxBytes: 1 << 30})
//	rec, err := s.Begin(captures.Exchange{…}) // a Series is a captures.Recorder
//	…
//	err = s.Close()
package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/captures/series/internal/ring"
	"unwire/captures/store"
)

// Options are the options of Create. With the zero value, a Series never begins a second file.
type Options struct {
	// The embedded store.Options apply to each file of the series.
	store.Options

	// MaxBytes is the size of a file in bytes, including SQLite's write-ahead log, at which the next file
	// begins; 0: no limit.
	MaxBytes int64

	// MaxAge is the time after a file's first exchange at which the next file begins; 0: no limit.
	MaxAge time.Duration

	// MaxTotal makes the series a ring: all files together have at most this size, in bytes, because the oldest
	// are removed. It also limits MaxBytes and MaxBody to a sixteenth of it. It is at least MinTotal; 0 means
	// that nothing is removed.
	MaxTotal int64

	// Rotated, if set, is called with the path of each further file.
	Rotated func(path string)

	// Closed, if set, is called with the path of each file that is complete, one at a time. It may call Forget.
	Closed func(path string)
	// Earlier are the paths of complete files of earlier recordings, oldest first. They count for MaxTotal and
	// may be removed.
	Earlier []string
}

// A Series records into the capture files NAME.uwc, NAME-2.uwc, NAME-3.uwc and so on. An exchange is never
// split: when the next file begins, running exchanges continue in the old one, which is closed when the last of
// them ends. All files share one redactor, so that a secret in an earlier file is recognised in a later one,
// although with another placeholder.
//
// Limits: a file exceeds MaxBytes by what its running exchanges add, and their number bounds the number of open
// files. Paths that exist already are skipped.
type Series struct {
	// o are the options with which the series was created.
	o Options

	// mu guards the fields for the current and earlier files.
	mu sync.Mutex
	// base is the path of the first file of the series without its extension.
	base string

	// ext is the extension of all files, such as ".uwc".
	ext string
	// n is the number of the current file in the series, from 1.
	n int
	// current is the open capture file in which new exchanges are recorded.
	current *store.Store
	// firstExchange is the start time of the first exchange in the current file; zero if there is none
	// yet.
	firstExchange time.Time
	// draining are the stores of earlier files in which exchanges still run.
	draining map[*store.Store]bool
	// closing counts the goroutines that wait for the files in draining.
	closing sync.WaitGroup

	// errs are the errors of all closed files; nil elements are possible.
	errs []error

	// files are the paths of all existing files of this series, oldest first.
	files []string
	// closed is the set of the paths of files that are complete.
	closed map[string]bool
	// earlier are the paths of complete files of earlier recordings that still exist, oldest first.
	earlier []string
	// reporting is locked while the callback for complete files runs, so that it runs only once at a time.
	reporting sync.Mutex
	// rotateErr is the error of creating the next file, after which nothing more is recorded.
	rotateErr error

	// lastSizeCheck is the time at which the total size of the files was last checked, in nanoseconds since
	// 1970.
	lastSizeCheck atomic.Int64

	// stopOnce makes sure that stopRing is closed only once.
	stopOnce sync.Once
	// rotated signals that a file was added. Its capacity is one signal.
	rotated chan struct{}
	// stopRing is closed to end the goroutine that removes old files.
	stopRing chan struct{}
	// ringEnded waits for the end of the goroutine that removes old files.
	ringEnded sync.WaitGroup
}

// Create creates the first file, path, and returns the series. Errors: those of store.Create.
func Create(path string, o Options) (*Series, error) {
	if err := o.applyRingLimits(); err != nil {
		return nil, err
	}
	current, err := store.Create(path, o.Options)
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	s := &Series{
		o: o, base: strings.TrimSuffix(path, ext), ext: ext, n: 1,
		current: current, draining: make(map[*store.Store]bool), files: []string{path},
		closed: make(map[string]bool), earlier: slices.Clone(o.Earlier), stopRing: make(chan struct{}), rotated: make(chan struct{}, 1),
	}
	if o.MaxTotal > 0 {
		s.ringEnded.Go(func() { ring.Maintain(ringFiles{s}, o.MaxTotal, s.rotated, s.stopRing) })
	}
	return s, nil
}

// Begin starts the recording of an exchange, in the next file if the current one is due for rotation.
func (s *Series) Begin(ex captures.Exchange) (captures.Recording, error) {
	s.makeRoom()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotateErr != nil {
		return nil, s.rotateErr
	}
	if s.rotationDue() {
		if s.rotateErr = s.rotate(); s.rotateErr != nil {
			s.errs = append(s.errs, s.rotateErr)
			if s.o.Failed != nil {
				s.o.Failed(s.rotateErr)
			}
			return nil, s.rotateErr
		}
	}
	if s.firstExchange.IsZero() {
		s.firstExchange = time.Now()
	}
	return s.current.Begin(ex)
}

// Current returns the file in which new exchanges are recorded.
func (s *Series) Current() *store.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Files returns the paths of all files, oldest first, without those that the ring has removed.
func (s *Series) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.files...)
}

// rotationDue reports whether the current file has reached MaxBytes or MaxAge. A file without exchanges is
// never due.
func (s *Series) rotationDue() bool {
	if s.firstExchange.IsZero() || s.current.Err() != nil {
		return false
	}
	if s.o.MaxAge > 0 && time.Since(s.firstExchange) >= s.o.MaxAge {
		return true
	}
	return s.o.MaxBytes > 0 && fileSize(s.current.Path)+fileSize(s.current.Path+"-wal") >= s.o.MaxBytes
}

// rotate starts the next file of the series. The caller must hold mu.
func (s *Series) rotate() error {
	path := s.nextPath()
	o := s.o.Options
	if r := s.current.Redactor; r != nil {
		// Share the redactor, so that it recognizes the secrets of earlier files.
		o.Redactor = r
	}
	next, err := store.Create(path, o)
	if err != nil {
		return fmt.Errorf("the next file of the recording cannot be created: %w", err)
	}

	// Exchanges in flight stay in the last file, which is closed when they have ended.
	last := s.current
	s.current, s.firstExchange = next, time.Time{}
	s.files = append(s.files, path)
	s.draining[last] = true
	s.closing.Add(1)
	last.WhenDrained(func() {
		defer s.closing.Done()
		s.closeDrained(last)
	})

	// Let the ring check its size now: a file that is complete may be removable.
	select {
	case s.rotated <- struct{}{}:
	// A signal is pending already, or the series is not a ring.
	default:
	}
	if s.o.Rotated != nil {
		s.o.Rotated(path)
	}
	return nil
}

// nextPath returns the first path after the current file's, by number, that does not exist.
func (s *Series) nextPath() string {
	for {
		s.n++
		path := fmt.Sprintf("%s-%d%s", s.base, s.n, s.ext)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
}

// closeDrained closes an earlier file whose last exchange has ended, or must end. Only the first call for a
// file has an effect.
func (s *Series) closeDrained(st *store.Store) {
	s.mu.Lock()
	open := s.draining[st]
	delete(s.draining, st)
	s.mu.Unlock()
	if !open {
		return
	}
	err := st.Close()
	s.mu.Lock()
	s.errs = append(s.errs, err)
	s.closed[st.Path] = true
	s.mu.Unlock()
	s.reportClosed(st.Path, err)
}

// reportClosed calls Options.Closed for a file that is complete.
func (s *Series) reportClosed(path string, err error) {
	if s.o.Closed != nil && err == nil {
		s.reporting.Lock()
		defer s.reporting.Unlock()
		s.o.Closed(path)
	}
}

// Forget removes a file from the list of files, because the caller has moved or deleted it.
func (s *Series) Forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(p string) bool { return p == path }
	s.files, s.earlier = slices.DeleteFunc(s.files, is), slices.DeleteFunc(s.earlier, is)
	delete(s.closed, path)
}

// Close ends the exchanges that are still running as incomplete, and closes all files.
//
// Errors: all errors that stopped the recording of a file.
func (s *Series) Close() error {
	s.stopOnce.Do(func() { close(s.stopRing) })
	s.ringEnded.Wait()

	// Close the files that wait for their last exchange.
	s.mu.Lock()
	var open []*store.Store
	for st := range s.draining {
		open = append(open, st)
	}
	s.mu.Unlock()
	for _, st := range open {
		s.closeDrained(st)
	}

	// closing also waits for files that another goroutine is closing just now.
	err := s.current.Close()
	s.closing.Wait()
	s.reportClosed(s.current.Path, err)
	if s.o.MaxTotal > 0 {
		ring.Trim(ringFiles{s}, s.o.MaxTotal, s.o.MaxTotal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(s.errs, err)...)
}

// fileSize returns the size of a file in bytes, or 0 if it does not exist.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
