//go:build unix

// Package filelock is the lock that the one recorder of a capture holds: a file beside
// the capture, which the system frees when the process dies. Package store takes it.
package filelock

import (
	"errors"
	"os"
	"syscall"

	"unwire/captures"
)

// A Lock is held by the one recorder of a capture, in a file beside it:
// on some systems a lock on the database itself would meet SQLite's own. The
// kernel releases it when the process dies, however it dies.
type Lock struct{ f *os.File }

// Take takes the lock at path or fails with ErrInUse at once.
func Take(path string) (*Lock, error) {
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
		// Its last owner removes the file. If that happened after our
		// open, we hold a lock that nobody else will ever see.
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

// Release removes the lock's file and frees the lock, in this order.
func (l *Lock) Release() error {
	err := os.Remove(l.f.Name())
	return errors.Join(err, l.f.Close())
}
