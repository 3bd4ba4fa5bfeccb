//go:build linux || darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

// freeBytes returns the number of bytes that a user can still write to the file system with the folder.
func freeBytes(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
