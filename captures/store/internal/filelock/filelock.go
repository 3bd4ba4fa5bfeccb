package filelock

import (
	"errors"
	"os"
)

// Free reports with an error that a lock is held, or cannot be taken, and otherwise leaves
// it free.
func Free(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := Take(path)
	if err != nil {
		return err
	}
	return lock.Release()
}
