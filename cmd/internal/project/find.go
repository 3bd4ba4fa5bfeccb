package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Find looks for unwire.yaml in dir and its parent folders. It stops after home ("" for no limit), and
// before a folder of another user. path is "" if no file was found.
//
// A file that belongs to another user, for instance in a world-writable folder, ends the search and is
// returned as foreign.
func Find(dir, home string) (path, foreign string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	// Resolve symbolic links first: the owner of the real folder counts.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || !ownedByUser(dir, info) {
			return "", "", nil // nothing of the user's is above
		}
		path := filepath.Join(dir, Name)
		switch info, err := os.Stat(path); {
		case err == nil && !info.Mode().IsRegular():
			return "", "", fmt.Errorf("%w: %s is not a regular file", errFile, path)
		case err == nil && !ownedByUser(path, info):
			return "", path, nil
		case err == nil:
			return path, "", nil
		}

		// Stop at the home folder: files above it are not the user's.
		above := filepath.Dir(dir)
		if dir == home || above == dir {
			return "", "", nil
		}
		dir = above
	}
}

// checkOwner returns an error if a user other than this one and root could have written the file.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", errFile, path)
	}
	if !ownedByUser(path, info) {
		return fmt.Errorf("%w: %s belongs to another user", errFile, path)
	}
	if writableByOthers(info) {
		return fmt.Errorf("%w: other users can write to %s: run 'chmod go-w %s'", errFile, path, path)
	}
	return nil
}
