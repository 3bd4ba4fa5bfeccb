//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapFile maps a file's first size bytes into memory.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}

// releasePages gives the memory of whole pages of a mapped file back.
func releasePages(pages []byte) {
	if len(pages) > 0 {
		_ = unix.Madvise(pages, unix.MADV_DONTNEED) // it only saves memory
	}
}
