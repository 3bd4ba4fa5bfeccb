package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Find looks for the file in a folder and in those above it, up to home, which may be "" if
// there is none, or to a folder of another user. It returns "" if there is no file.
//
// The file of another user, such as one in a folder that everybody may write to, ends the
// search and is returned as foreign.
func Find(dir, home string) (path, foreign string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
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
		above := filepath.Dir(dir)
		if dir == home || above == dir {
			return "", "", nil
		}
		dir = above
	}
}

// checkOwner refuses a file that somebody else may have written.
func checkOwner(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", errFile, path)
	}
	if !ownedByUser(path, info) {
		return fmt.Errorf("%w: %s belongs to another user", errFile, path)
	}
	if writableByOthers(info) {
		return fmt.Errorf("%w: others may write to %s: 'chmod go-w %s' ends that", errFile, path, path)
	}
	return nil
}
