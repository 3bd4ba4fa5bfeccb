package pipeline

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"unwire/captures/objectstore"
)

// removeEmptyFolders removes the empty folders below a key, and then the folder that contains all staging
// folders if it is empty. It does nothing for buckets, which have no folders.
func removeEmptyFolders(s objectstore.Store, key string) {
	name := strings.TrimPrefix(s.URL(key), "file://")
	if objectstore.IsURL(name) {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	// Inner folders first. A folder that is not empty stays.
	slices.Reverse(dirs)
	for _, dir := range append(dirs, filepath.Dir(name)) {
		_ = os.Remove(dir)
	}
}
