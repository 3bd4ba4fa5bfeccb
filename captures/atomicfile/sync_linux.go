package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem flushes the file system of an open folder. ok reports whether the system can.
func syncFileSystem(dir *os.File) (ok bool, err error) {
	err = unix.Syncfs(int(dir.Fd()))
	return !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL), err
}
