package filelock

import (
	"errors"
	"os"
)

// CheckFree returns an error if another process has the lock at path, or if the lock cannot be acquired. It
// does not keep the lock.
func CheckFree(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := Acquire(path)
	if err != nil {
		return err
	}
	return lock.Release()
}
