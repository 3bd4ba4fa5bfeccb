package series

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"unwire/captures/series/internal/ring"
	"unwire/captures/store"
)

// MinTotal is the smallest allowed Options.MaxTotal, in bytes.
const MinTotal = 16 << 20

// applyRingLimits sets the limits of a file, of a body and of the queue to a small part of MaxTotal, if that is
// set and they are larger.
func (o *Options) applyRingLimits() error {
	switch {
	case o.MaxTotal == 0:
		return nil
	case o.MaxTotal < MinTotal:
		return fmt.Errorf("captures: the maximum size of all files is %d bytes, but must be at least %d", o.MaxTotal, MinTotal)
	}
	part := o.MaxTotal / ring.Parts
	for _, limit := range []*int64{&o.MaxBytes, &o.MaxBody, &o.QueueBytes} {
		if *limit == 0 || *limit > part {
			*limit = part
		}
	}
	return nil
}

// sizeCheckInterval is the shortest time between two size checks in makeRoom.
const sizeCheckInterval = 10 * time.Millisecond

// makeRoom removes the oldest files if the total size is too large. Begin calls it, because under heavy traffic
// the periodic check (ring.Maintain) would be too late.
func (s *Series) makeRoom() {
	if s.o.MaxTotal == 0 {
		return
	}

	// Many goroutines call Begin; the compare-and-swap lets one of them check.
	last, now := s.lastSizeCheck.Load(), time.Now().UnixNano()
	if now-last < int64(sizeCheckInterval) || !s.lastSizeCheck.CompareAndSwap(last, now) {
		return
	}
	room := s.o.MaxTotal - 4*s.o.MaxTotal/ring.Parts
	ring.Trim(ringFiles{s}, room, room)
}

// ringFiles implements the interface files of package ring for a Series.
type ringFiles struct {
	// The embedded Series is the series whose files are listed and removed.
	*Series
}

// Size returns the total size of all files, including SQLite's write-ahead logs and shared-memory files, in
// bytes.
func (s ringFiles) Size() (n int64) {
	s.mu.Lock()
	files := slices.Concat(s.earlier, s.files)
	s.mu.Unlock()
	for _, path := range files {
		n += fileSize(path) + fileSize(path+"-wal") + fileSize(path+"-shm")
	}
	return n
}

// RemoveOldestClosed removes the oldest file that is closed. It returns false if there is none.
func (s ringFiles) RemoveOldestClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.earlier) > 0 {
		if err := os.Remove(s.earlier[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		s.earlier = s.earlier[1:]
		return true
	}
	i := slices.IndexFunc(s.files, func(path string) bool { return s.closed[path] })
	if i < 0 {
		return false
	}
	path := s.files[i]
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// On Windows, a file that is open elsewhere cannot be removed: the next check tries again.
		return false
	}
	s.files = slices.Delete(s.files, i, i+1)
	delete(s.closed, path)
	return true
}

// CloseOldest closes the oldest file that is open for recording. Its running exchanges end as incomplete.
func (s ringFiles) CloseOldest() bool {
	s.mu.Lock()
	// If the current file is the only open one, begin a new one first.
	if len(s.draining) == 0 && !s.firstExchange.IsZero() && s.rotateErr == nil {
		if s.rotateErr = s.rotate(); s.rotateErr != nil {
			s.errs = append(s.errs, s.rotateErr)
		}
	}
	var oldest *store.Store
	for _, path := range s.files {
		for st := range s.draining {
			if oldest == nil && st.Path == path {
				oldest = st
			}
		}
	}
	s.mu.Unlock()
	if oldest == nil {
		return false
	}
	s.closeDrained(oldest)
	return true
}
