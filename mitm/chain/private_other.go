//go:build !unix

package chain

import "os"

// isPrivate reports whether there is the folder: temporary folders are a user's own.
func isPrivate(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}
