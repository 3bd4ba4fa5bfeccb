package filelock

import (
	"errors"
	"syscall"

	"unwire/captures"
)

// A Lock is an acquired lock: an open handle of a file that cannot be shared. Windows deletes the file when the
// handle is closed, even if the process is killed.
type Lock struct {
	// h is the handle of the open lock file; closing it releases the lock.
	h syscall.Handle
}

// fileFlagDeleteOnClose is FILE_FLAG_DELETE_ON_CLOSE, which package syscall lacks.
const fileFlagDeleteOnClose = 0x0400_0000

// errorSharingViolation is ERROR_SHARING_VIOLATION, which package syscall lacks.
const errorSharingViolation = syscall.Errno(32)

// Acquire acquires the lock at path. If another process has it, it fails at once with captures.ErrInUse.
func Acquire(path string) (*Lock, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL|fileFlagDeleteOnClose, 0)
	if errors.Is(err, errorSharingViolation) {
		return nil, captures.ErrInUse
	}
	if err != nil {
		return nil, err
	}
	return &Lock{h}, nil
}

// Release releases the lock. Windows then deletes the file.
func (l *Lock) Release() error { return syscall.CloseHandle(l.h) }
