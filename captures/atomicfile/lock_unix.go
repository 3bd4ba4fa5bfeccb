//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// hasLocks reports whether tryLock works on this system.
const hasLocks = true

// tryLock locks an open file or folder, and reports whether it succeeded; it fails if another process
// has the lock. The system releases the lock when the process ends.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
