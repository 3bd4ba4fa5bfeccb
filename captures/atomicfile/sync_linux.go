package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem flushes the whole file system of an open folder to disk. ok is false if the system cannot do
// that, and the caller must flush each file.
func syncFileSystem(dir *os.File) (ok bool, err error) {
	err = unix.Syncfs(int(dir.Fd()))
	return !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL), err
}
