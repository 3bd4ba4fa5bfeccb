package passive

import (
	"io/fs"
	"os"
)

// supported is false: passive recording does not exist on Windows, so nothing can be left over.
const supported = false

// tryLock does nothing and reports success, because this package's locks are not supported on Windows.
func tryLock(*os.File) (bool, error) { return true, nil }

// isOwn returns false, because leftovers are not searched on Windows.
func isOwn(fs.FileInfo) bool { return false }
