//go:build unix

package leftover

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
func made(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Keys, Packets} {
		if err := os.WriteFile(f.Path(name), []byte("made up"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteAbout(About{V: 1, Output: "/a.uwc"}); err != nil {
		t.Fatal(err)
	}
	return f
}

func find(t *testing.T, dir string) ([]*Folder, []refusal) {
	t.Helper()
	left, refused, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return left, refused
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f := made(t, dir)
	if info, err := os.Stat(f.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if left, refused := find(t, dir); len(left)+len(refused) != 0 {
		t.Fatalf("a folder in use is found: %v, %v", left, refused)
	}
	f.Close() // as the system does when the process dies
	left, refused := find(t, dir)
	if len(left) != 1 || len(refused) != 0 || left[0].Dir() != f.Dir() {
		t.Fatalf("%v, %v", left, refused)
	}
	if about, err := left[0].About(); err != nil || about.Output != "/a.uwc" {
		t.Errorf("%+v, %v", about, err)
	}
	if again, _ := find(t, dir); len(again) != 0 {
		t.Error("found by two at once")
	}
	if err := left[0].Remove(); err != nil {
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
		made(t, dir).Close()
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := made(t, dir).Remove(); err != nil {
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
				left, refused, err := Find(dir)
				if err != nil || len(refused) != 0 {
					t.Errorf("%v, %v", refused, err)
				}
				for _, f := range left {
					n.Add(1)
					if err := f.Remove(); err != nil {
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
		forge func(t *testing.T, f *Folder)
		why   string
	}{
		"a symbolic link": {func(t *testing.T, f *Folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.Dir(), target)
			symlink(t, target, f.Dir())
		}, "it is a symbolic link"},
		"a file": {func(t *testing.T, f *Folder) {
			if err := os.RemoveAll(f.Dir()); err != nil {
				t.Fatal(err)
			}
			write(t, f.Dir())
		}, "it is not a folder"},
		"another mode": {func(t *testing.T, f *Folder) {
			if err := os.Chmod(f.Dir(), 0o750); err != nil {
				t.Fatal(err)
			}
		}, "its mode is 0750, not 0700"},
		"another owner": {func(t *testing.T, f *Folder) {
			if err := os.Chown(f.Dir(), 12345, -1); err != nil {
				t.Skip("only root can give a folder away")
			}
		}, "it belongs to another user"},
		"another owner of a file": {func(t *testing.T, f *Folder) {
			if err := os.Chown(f.Path(Keys), 12345, -1); err != nil {
				t.Skip("only root can give a file away")
			}
		}, `"keys.txt" in it belongs to another user`},
		"a link within": {func(t *testing.T, f *Folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.Path(Packets), target)
			symlink(t, target, f.Path(Packets))
		}, `"packets.pcapng" in it is not a regular file`},
		"a link for the lock": {func(t *testing.T, f *Folder) {
			target := filepath.Join(t.TempDir(), "target")
			rename(t, f.Path(lockName), target)
			symlink(t, target, f.Path(lockName))
		}, `"lock" in it is not a regular file`},
		"a folder within": {func(t *testing.T, f *Folder) {
			if err := os.Mkdir(f.Path("more"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, `"more" in it is not a regular file`},
		"another file": {func(t *testing.T, f *Folder) { write(t, f.Path("notes.txt")) }, `it has "notes.txt"`},
		"no lock": {func(t *testing.T, f *Folder) {
			if err := os.Remove(f.Path(lockName)); err != nil {
				t.Fatal(err)
			}
		}, "it has no lock file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := made(t, dir)
			f.Close()
			c.forge(t, f)
			left, refused := find(t, dir)
			if len(left) != 0 || len(refused) != 1 || refused[0].Path != f.Dir() || !strings.Contains(refused[0].Why, c.why) {
				t.Errorf("%v, %v", left, refused)
			}
			if _, err := os.Lstat(f.Dir()); err != nil {
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
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if left, refused := find(t, dir); len(left)+len(refused) != 0 {
		t.Fatalf("%v, %v", left, refused)
	}
	old := time.Now().Add(-2 * newest)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	left, _ := find(t, dir)
	if len(left) != 1 {
		t.Fatalf("%v", left)
	}
	if err := left[0].Remove(); err != nil {
		t.Error(err)
	}
}
