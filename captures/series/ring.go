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

// MinTotal is the least that Options.MaxTotal may be, in bytes.
const MinTotal = 16 << 20

// beginRing sets what a ring needs: files that are small, no exchange that is larger than
// one of them, and no more that waits to be written.
func (o *Options) beginRing() error {
	switch {
	case o.MaxTotal == 0:
		return nil
	case o.MaxTotal < MinTotal:
		return fmt.Errorf("captures: a ring of %d bytes: want %d or more", o.MaxTotal, MinTotal)
	}
	part := o.MaxTotal / ring.Parts
	for _, limit := range []*int64{&o.MaxBytes, &o.MaxBody, &o.QueueBytes} {
		if *limit == 0 || *limit > part {
			*limit = part
		}
	}
	return nil
}

// betweenLooks is how often Begin looks at the size of a ring at most.
const betweenLooks = 10 * time.Millisecond

// makeRoom removes the oldest files of a ring before more is written, where whoever does
// so otherwise comes too late.
func (s *Series) makeRoom() {
	if s.o.MaxTotal == 0 {
		return
	}
	last, now := s.looked.Load(), time.Now().UnixNano()
	if now-last < int64(betweenLooks) || !s.looked.CompareAndSwap(last, now) {
		return
	}
	room := s.o.MaxTotal - 4*s.o.MaxTotal/ring.Parts
	ring.Trim(ringFiles{s}, room, room)
}

// ringFiles are the files of a Series that is a ring.
type ringFiles struct{ *Series }

// Size is what all files take, with their logs.
func (s ringFiles) Size() (n int64) {
	for _, path := range s.Files() {
		n += fileSize(path) + fileSize(path+"-wal") + fileSize(path+"-shm")
	}
	return n
}

// DropClosed removes the oldest file that is closed.
func (s ringFiles) DropClosed() bool {
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

// EndOldest closes the oldest file, so that what runs in it ends as incomplete.
func (s ringFiles) EndOldest() bool {
	s.mu.Lock()
	if len(s.old) == 0 && !s.since.IsZero() && s.failed == nil {
		if s.failed = s.rotate(); s.failed != nil {
			s.errs = append(s.errs, s.failed)
		}
	}
	var oldest *store.Store
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
