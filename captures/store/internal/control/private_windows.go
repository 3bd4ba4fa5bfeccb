package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// unixSockets is false on Windows, where a socket inherits the permissions of its folder.
const unixSockets = false

// openPrivate opens a control file, which must be a regular file. Its permissions are those of the capture's
// folder.
//
// Errors: ErrNoWriter if it does not exist.
func openPrivate(name string) (*os.File, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoWriter
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file, so unwire does not use it", name)
	}
	return os.Open(name)
}
