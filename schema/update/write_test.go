package update_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"unwire/schema/update"
)

// TestWriteFiles: all files are written or none, and nothing else stays in the folder.
func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	files := []update.File{{Name: "a.proto", Before: "before", After: "after"}, {Name: "b/b.proto", After: "new", New: true}}
	if err := update.WriteFiles(dir, files); err != nil {
		t.Fatal(err)
	}
	if text("a.proto") != "after" || text("b/b.proto") != "new" {
		t.Errorf("%q, %q", text("a.proto"), text("b/b.proto"))
	}
	if info, err := os.Stat(filepath.Join(dir, "a.proto")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}

	if err := os.Symlink("a.proto", filepath.Join(dir, "link.proto")); err != nil {
		t.Skip("no symbolic links here")
	}
	err := update.WriteFiles(dir, []update.File{{Name: "a.proto", Before: "after", After: "later"}, {Name: "link.proto", After: "x"}})
	if pe := (*fs.PathError)(nil); !errors.As(err, &pe) || text("a.proto") != "after" {
		t.Errorf("%v, %q", err, text("a.proto"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}
