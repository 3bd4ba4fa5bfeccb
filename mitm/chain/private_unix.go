//go:build unix

package chain

import (
	"os"
	"syscall"
)

// isPrivate reports whether a folder belongs to this user and is not writable by others.
func isPrivate(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
