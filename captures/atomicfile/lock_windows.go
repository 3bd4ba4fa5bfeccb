package atomicfile

import "os"

// hasLocks reports whether tryLock works on this system.
const hasLocks = false

// tryLock does nothing: the system removes no file that is open.
func tryLock(*os.File) bool { return true }
