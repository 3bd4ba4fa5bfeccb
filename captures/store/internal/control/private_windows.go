package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// unixSockets is false: who may connect to one depends on rights that it inherits here.
const unixSockets = false

// openPrivate opens a regular file. The rights to it are those of the capture's folder.
//
// Errors: ErrNobody if it is not there.
func openPrivate(name string) (*os.File, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNobody
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file, so it is not used", name)
	}
	return os.Open(name)
}
