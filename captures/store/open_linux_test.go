package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"unwire/captures/internal/require"
	"unwire/captures/need"
)

// SQLite says only that it could not open the file.
func TestOpenWithoutPermission(t *testing.T) {
	path := record(t, "x")
	require.NoError(t, os.Chmod(path, 0))
	if os.Getuid() == 0 {
		// The superuser may read everything: open the file as another user, on a thread that ends with the test.
		for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
		runtime.LockOSThread()
		require.NoError(t, unix.Setfsuid(need.Nobody))
		defer func() { _ = unix.Setfsuid(0) }()
	}
	_, err := Open(path, ReadOptions{})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path+": permission denied") {
		t.Errorf("Open: %v", err)
	}
}
