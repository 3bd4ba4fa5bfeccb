//go:build unix

package app

import "golang.org/x/sys/unix"

// releasePages tells the kernel that the whole pages of a memory-mapped range are no longer needed, so
// that they leave the resident memory.
func releasePages(pages []byte) {
	if len(pages) > 0 {
		_ = unix.Madvise(pages, unix.MADV_DONTNEED) // it only saves memory
	}
}
