//go:build !windows

package project

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser reports whether a file or folder belongs to the user or to root.
func ownedByUser(_ string, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// writableByOthers reports whether others than the owner may write to a file. A group with
// the number of the owner is taken for the owner's own, as many systems set it up.
func writableByOthers(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != st.Uid
}
