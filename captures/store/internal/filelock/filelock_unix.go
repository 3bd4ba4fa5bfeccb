//go:build unix

// Package filelock implements the lock that gives one process the right to record to a capture. It is a file
// next to the capture. The system releases the lock when the process ends, even if it is killed. Package store
// uses it.
//
//	lock, err := filelock.Acquire("a.uwc-lock")
//	defer lock.Release()
package filelock

import (
	"errors"
	"os"
	"syscall"

	"unwire/captures"
)

// A Lock is an acquired lock on a file next to the capture. The file is separate because on some systems a lock
// on the database would collide with SQLite's.
type Lock struct {
	// f is the open lock file; closing it releases the lock.
	f *os.File
}

// Acquire acquires the lock at path. If another process has it, it fails at once with ErrInUse.
func Acquire(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, captures.ErrInUse
			}
			return nil, err
		}
		// The previous owner may have removed the file after we opened it. Our lock is then on a file that no
		// other process can see: try again.
		ours, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(ours, there) {
			return &Lock{f}, nil
		}
		_ = f.Close()
	}
}

// Release deletes the lock file and then releases the lock. In the opposite order, it could delete the lock
// file of the next owner.
func (l *Lock) Release() error {
	err := os.Remove(l.f.Name())
	return errors.Join(err, l.f.Close())
}
