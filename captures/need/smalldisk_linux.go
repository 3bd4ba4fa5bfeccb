package need

import (
	"fmt"
	"syscall"
	"testing"
)

// SmallDisk mounts an empty file system of kib KiB, to test a full disk, and returns its folder. It skips the
// test if the user may not mount file systems.
func SmallDisk(t testing.TB, kib int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk,mode=0700", kib)); err != nil {
		t.Skipf("a small file system cannot be mounted, as root can: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}
