//go:build unix

package intercept

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens the file with the server's address, and checks that only this user can have written it.
// Otherwise another user could direct decisions to a server of their own.
func openPrivate(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
			err = fmt.Errorf("other users can write to %s, so unwire does not use the file: delete it", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
