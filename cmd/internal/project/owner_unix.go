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

// writableByOthers reports whether users other than the owner may write to a file. A group with the same
// number as the owner is assumed to have no other members, as on systems that give each user a group.
func writableByOthers(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != st.Uid
}
