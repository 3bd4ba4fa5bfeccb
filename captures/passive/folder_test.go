//go:build unix

package passive

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// made is a folder as a capture that is running has it.
func made(t *testing.T, dir string) *folder {
	t.Helper()
	f, err := createFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{keysFile, packetsFile} {
		if err := os.WriteFile(f.file(name), []byte("made up"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.writeMetadata(metadata{V: 1, Output: "/a.uwc"}); err != nil {
		t.Fatal(err)
	}
	return f
}

func find(t *testing.T, dir string) ([]*folder, []Refusal) {
	t.Helper()
	left, refused, err := findFolders(dir)
	if err != nil {
		t.Fatal(err)
	}
	return left, refused
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f := made(t, dir)
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if left, refused := find(t, dir); len(left)+len(refused) != 0 {
		t.Fatalf("a folder in use is found: %v, %v", left, refused)
	}
	f.close() // as the system does when the process dies
	left, refused := find(t, dir)
	if len(left) != 1 || len(refused) != 0 || left[0].path != f.path {
		t.Fatalf("%v, %v", left, refused)
	}
	if about, err := left[0].readMetadata(); err != nil || about.Output != "/a.uwc" {
		t.Errorf("%+v, %v", about, err)
	}
	if again, _ := find(t, dir); len(again) != 0 {
		t.Error("found by two at once")
	}
	if err := left[0].remove(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

// TestFoundOnce: of many that look at the same time, one gets a folder, and none
// takes one away that is being made or removed.
func TestFoundOnce(t *testing.T) {
	dir := t.TempDir()
	const folders = 20
	for range folders {
		made(t, dir).close()
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := made(t, dir).remove(); err != nil {
					t.Errorf("somebody took it away: %v", err)
					return
				}
			}
		}
	})
	var n atomic.Int32
	var finders sync.WaitGroup
	for range 4 {
		finders.Go(func() {
			for range 30 {
				left, refused, err := findFolders(dir)
				if err != nil || len(refused) != 0 {
					t.Errorf("%v, %v", refused, err)
				}
				for _, f := range left {
					n.Add(1)
					if err := f.remove(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	finders.Wait()
	close(stop)
	busy.Wait()
	if n.Load() != folders {
		t.Errorf("%d folders were found %d times", folders, n.Load())
	}
}

// TestForgedFolders: what another made, or changed, is left alone, with what a
// link leads to.
func TestForgedFolders(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(t *testing.T, f *folder)
		why   string
	}{
		"a symbolic link": {func(t *testing.T, f *folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.path, target)
			symlink(t, target, f.path)
		}, "the folder is a symbolic link"},
		"a file": {func(t *testing.T, f *folder) {
			if err := os.RemoveAll(f.path); err != nil {
				t.Fatal(err)
			}
			write(t, f.path)
		}, "the path is not a folder"},
		"another mode": {func(t *testing.T, f *folder) {
			if err := os.Chmod(f.path, 0o750); err != nil {
				t.Fatal(err)
			}
		}, "its mode is 0750, not 0700"},
		"another owner": {func(t *testing.T, f *folder) {
			if err := os.Chown(f.path, 12345, -1); err != nil {
				t.Skip("only root can give a folder away")
			}
		}, "the folder belongs to another user"},
		"another owner of a file": {func(t *testing.T, f *folder) {
			if err := os.Chown(f.file(keysFile), 12345, -1); err != nil {
				t.Skip("only root can give a file away")
			}
		}, `"keys.txt" in the folder belongs to another user`},
		"a link within": {func(t *testing.T, f *folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.file(packetsFile), target)
			symlink(t, target, f.file(packetsFile))
		}, `"packets.pcapng" in it is not a regular file`},
		"a link for the lock": {func(t *testing.T, f *folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.file(lockName), target)
			symlink(t, target, f.file(lockName))
		}, `"lock" in it is not a regular file`},
		"a folder within": {func(t *testing.T, f *folder) {
			if err := os.Mkdir(f.file("more"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, `"more" in it is not a regular file`},
		"another file": {func(t *testing.T, f *folder) { write(t, f.file("notes.txt")) }, `it has "notes.txt"`},
		"no lock": {func(t *testing.T, f *folder) {
			if err := os.Remove(f.file(lockName)); err != nil {
				t.Fatal(err)
			}
		}, "the folder has no lock file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := made(t, dir)
			f.close()
			c.forge(t, f)
			left, refused := find(t, dir)
			if len(left) != 0 || len(refused) != 1 || refused[0].Path != f.path || !strings.Contains(refused[0].Why, c.why) {
				t.Errorf("%v, %v", left, refused)
			}
			if _, err := os.Lstat(f.path); err != nil {
				t.Error(err)
			}
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("made up"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFolderInTheMaking: a folder without a lock file and without anything else
// is one that is being made, until it is old.
func TestFolderInTheMaking(t *testing.T) {
	dir := t.TempDir()
	path, err := os.MkdirTemp(dir, folderPrefix)
	if err != nil {
		t.Fatal(err)
	}
	if left, refused := find(t, dir); len(left)+len(refused) != 0 {
		t.Fatalf("%v, %v", left, refused)
	}
	old := time.Now().Add(-2 * minLeftoverAge)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	left, _ := find(t, dir)
	if len(left) != 1 {
		t.Fatalf("%v", left)
	}
	if err := left[0].remove(); err != nil {
		t.Error(err)
	}
}
