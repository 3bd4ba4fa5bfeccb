package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

const (
	// ringParts is in how many files about a ring is kept: one of them goes at a time.
	ringParts = 16

	// ringInterval is how often the size of a ring is looked at.
	ringInterval = 50 * time.Millisecond

	// ringReserve is how many of these are free for what is written between two looks, and
	// while a file is closed.
	ringReserve = 4

	// MinTotal is the least that SeriesOptions.MaxTotal may be, in bytes.
	MinTotal = 16 << 20
)

// beginRing sets what a ring needs: files that are small, no exchange that is larger than
// one of them, and no more that waits to be written.
func (o *SeriesOptions) beginRing() error {
	switch {
	case o.MaxTotal == 0:
		return nil
	case o.MaxTotal < MinTotal:
		return fmt.Errorf("captures: a ring of %d bytes: want %d or more", o.MaxTotal, MinTotal)
	}
	part := o.MaxTotal / ringParts
	if o.MaxBytes == 0 || o.MaxBytes > part {
		o.MaxBytes = part
	}
	if o.MaxBody == 0 || o.MaxBody > part {
		o.MaxBody = part
	}
	if o.QueueBytes == 0 || o.QueueBytes > part {
		o.QueueBytes = part
	}
	return nil
}

// keepRing removes old files until stop is closed.
func (s *Series) keepRing(stop <-chan struct{}) {
	tick := time.NewTicker(ringInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		case <-s.rotated:
		}
		s.trim(ringReserve * s.o.MaxTotal / ringParts)
	}
}

// trim removes files, the oldest first, until so much is left for what is recorded next.
// Those with exchanges that still run stay, unless nothing else is left to remove.
func (s *Series) trim(reserve int64) {
	for s.size() > s.o.MaxTotal-reserve {
		if s.dropClosed() {
			continue
		}
		// What runs may go on until half of the reserve is used.
		if s.size() <= s.o.MaxTotal-reserve/2 || !s.endOldest() {
			return
		}
	}
}

// size is what all files take, with their logs.
func (s *Series) size() (n int64) {
	for _, path := range s.Files() {
		n += fileSize(path) + fileSize(path+"-wal") + fileSize(path+"-shm")
	}
	return n
}

// dropClosed removes the oldest file that is closed.
func (s *Series) dropClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.files, func(path string) bool { return s.closed[path] })
	if i < 0 {
		return false
	}
	path := s.files[i]
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false // somebody has it open, on Windows: next time
	}
	s.files = slices.Delete(s.files, i, i+1)
	delete(s.closed, path)
	return true
}

// endOldest closes the oldest file, so that what runs in it ends as incomplete.
func (s *Series) endOldest() bool {
	s.mu.Lock()
	if len(s.old) == 0 && !s.since.IsZero() && s.failed == nil {
		if s.failed = s.rotate(); s.failed != nil {
			s.errs = append(s.errs, s.failed)
		}
	}
	var oldest *Store
	for _, path := range s.files {
		for st := range s.old {
			if oldest == nil && st.Path == path {
				oldest = st
			}
		}
	}
	s.mu.Unlock()
	if oldest == nil {
		return false
	}
	s.closeOld(oldest)
	return true
}
