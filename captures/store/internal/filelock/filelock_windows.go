package filelock

import (
	"errors"
	"syscall"

	"unwire/captures"
)

// A Lock is held by the one recorder of a capture: a handle to a file
// beside it that cannot be shared and that removes the file when it is
// closed, also when the process dies.
type Lock struct{ h syscall.Handle }

// fileFlagDeleteOnClose is FILE_FLAG_DELETE_ON_CLOSE, which syscall lacks.
const fileFlagDeleteOnClose = 0x0400_0000

// errorSharingViolation is ERROR_SHARING_VIOLATION, which syscall lacks.
const errorSharingViolation = syscall.Errno(32)

// Take takes the lock at path or fails with captures.ErrInUse at once.
func Take(path string) (*Lock, error) {
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

// Release frees the lock, which removes its file.
func (l *Lock) Release() error { return syscall.CloseHandle(l.h) }
