//go:build unix

package passive

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// supported means that this system has file locks, by which leftovers of killed recorders are recognised.
const supported = true

// tryLock locks a file. It returns false if another process has locked it.
func tryLock(f *os.File) (locked bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// isOwn reports whether a file belongs to the user that runs this process.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Geteuid())
}
