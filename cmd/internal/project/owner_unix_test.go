//go:build !windows

package project

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), Name)
	if err := os.WriteFile(path, []byte("profile: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o646: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, profiles); (err == nil) != want || err != nil && !errors.Is(err, errFile) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("giving a file to another user takes root")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, profiles); !errors.Is(err, errFile) {
		t.Errorf("another user's file: %v", err)
	}
	if got, foreign, err := Find(filepath.Dir(path), ""); got != "" || foreign != path || err != nil {
		t.Errorf("%q, %q, %v", got, foreign, err)
	}
	dir := filepath.Join(t.TempDir(), "theirs", "mine")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(dir)), Name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(dir), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got, foreign, err := Find(dir, ""); got != "" || foreign != "" || err != nil {
		t.Errorf("beyond a folder of another user: %q, %q, %v", got, foreign, err)
	}
}
