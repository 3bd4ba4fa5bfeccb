//go:build unix

package passive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures/store"
)

func newCapture(t *testing.T, path string) (id []byte) {
	t.Helper()
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if id, err = s.ID(t.Context()); err != nil || len(id) == 0 {
		t.Fatalf("%x, %v", id, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestTarget: a capture is completed only if it is the one that was being recorded.
func TestTarget(t *testing.T) {
	t.Parallel()
	dir, fallback := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "a.uwc")
	id := newCapture(t, path)
	recovered := "unwire-recovered-20260102-030405"
	if err := os.WriteFile(filepath.Join(dir, recovered+".uwc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for name, c := range map[string]struct {
		capture string
		id      []byte
		want    string
	}{
		"the same":            {path, id, path},
		"another one":         {path, []byte("another"), filepath.Join(dir, recovered+"-2.uwc")},
		"unknown":             {path, nil, filepath.Join(dir, recovered+"-2.uwc")},
		"it was removed":      {filepath.Join(dir, "b.uwc"), id, filepath.Join(dir, "b.uwc")},
		"its folder was also": {filepath.Join(dir, "c", "a.uwc"), id, filepath.Join(fallback, recovered+".uwc")},
	} {
		l := &Leftover{capture: c.capture, metadata: metadata{Capture: c.id, Started: began}}
		if got, err := l.target(t.Context(), fallback); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestOf: what a capture names is used if it is a folder that a recorder has left.
func TestOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.uwc")
	if left, err := FindFor(path); left != nil || err != nil {
		t.Errorf("without a pointer: %v, %v", left, err)
	}
	f := made(t, dir)
	if err := writePointer(path, f.path); err != nil {
		t.Fatal(err)
	}
	if left, err := FindFor(path); left != nil || err != nil {
		t.Errorf("while it is recorded: %v, %v", left, err)
	}
	f.close()
	left, err := FindFor(path)
	if err != nil || left == nil || left.Dir != f.path || left.PacketsFile() != f.file(packetsFile) {
		t.Fatalf("%+v, %v", left, err)
	}
	if again, err := FindFor(path); again != nil || err != nil {
		t.Errorf("while it is recovered: %v, %v", again, err)
	}
	if err := left.Remove(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}

	// What others wrote is not followed.
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ folder, why string }{
		{other, "it is not named"},
		{filepath.Join(dir, folderPrefix+"link"), "symbolic link"},
		{filepath.Join(dir, folderPrefix+"gone"), ""},
	} {
		if strings.HasSuffix(c.folder, "link") {
			symlink(t, other, c.folder)
		}
		if err := writePointer(path, c.folder); err != nil {
			t.Fatal(err)
		}
		left, err := FindFor(path)
		if left != nil || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, %v", c.folder, left, err)
		}
	}
	if _, err := os.Lstat(path + pointerSuffix); !os.IsNotExist(err) {
		t.Errorf("a pointer to nothing stays: %v", err)
	}
	if err := os.Mkdir(path+pointerSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := FindFor(path); err == nil {
		t.Error("a folder is a pointer")
	}
}

// FuzzPointer reads pointers of any kind.
func FuzzPointer(f *testing.F) {
	for _, text := range []string{"", "{}", `{"v":1,"folder":"/tmp/x"}`, `{"folder":1}`, "[[[["} {
		f.Add([]byte(text))
	}
	name := filepath.Join(f.TempDir(), "a.uwc")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name+pointerSuffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if folder, err := readPointer(name); err != nil && folder != "" || len(folder) > maxPointer {
			t.Errorf("%q, %v", folder, err)
		}
	})
}
