//go:build !unix

package intercept

import "os"

// openPrivate opens the file with the server's address. Its permissions are those of the capture's folder.
func openPrivate(name string) (*os.File, error) { return os.Open(name) }
