//go:build unix

package app

import "golang.org/x/sys/unix"

// releasePages gives the memory of whole pages of a mapped file back.
func releasePages(pages []byte) {
	if len(pages) > 0 {
		_ = unix.Madvise(pages, unix.MADV_DONTNEED) // it only saves memory
	}
}
