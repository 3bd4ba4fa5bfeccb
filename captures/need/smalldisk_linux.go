package need

import (
	"fmt"
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of so many KiB and returns its folder. It skips the test where the user may not mount
// one; TestResultAfterWriteError in cmd/unwire has a limit on the size of files instead.
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
