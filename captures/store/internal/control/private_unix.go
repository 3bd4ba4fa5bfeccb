//go:build unix

package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// unixSockets means that the permissions of a folder protect a Unix socket in it.
const unixSockets = true

// openPrivate opens a control file, and checks that only this user can write to it. Otherwise another user
// could redirect additions to a socket of their own.
//
// Errors: ErrNoWriter if it does not exist.
func openPrivate(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoWriter
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%s is a symbolic link, so unwire does not use the file: delete it", name)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		owner, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is not a regular file", name)
		case info.Mode().Perm()&0o022 != 0:
			err = fmt.Errorf("other users can write to %s, so unwire does not use the file: delete it", name)
		case !ok || int(owner.Uid) != os.Geteuid():
			err = fmt.Errorf("%s belongs to another user, so unwire does not use the file", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
