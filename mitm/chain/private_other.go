//go:build !unix

package chain

import "os"

// isPrivate reports whether a folder exists. On this system, folders for temporary files are private to each
// user.
func isPrivate(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}
