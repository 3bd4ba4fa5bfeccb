package update

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newFileMode is the mode of files that were not there.
const newFileMode os.FileMode = 0o644

// WriteFiles replaces files below dir, all or none: each is written under a temporary
// name in its folder before any of them gets its name.
//
// Errors: files that their owner may not write, and symbolic links.
func WriteFiles(dir string, files []File) error {
	var staged []string
	defer func() {
		for _, name := range staged {
			// Those that got their names are gone already.
			os.Remove(name) //nolint:errcheck
		}
	}()
	for _, file := range files {
		temp, err := stage(filepath.Join(dir, filepath.FromSlash(file.Name)), file.After)
		if err != nil {
			return fmt.Errorf("nothing is written: %w", err)
		}
		staged = append(staged, temp)
	}
	for i, file := range files {
		if err := os.Rename(staged[i], filepath.Join(dir, filepath.FromSlash(file.Name))); err != nil {
			for _, back := range files[:i] {
				err = errors.Join(err, restore(filepath.Join(dir, filepath.FromSlash(back.Name)), back))
			}
			return fmt.Errorf("nothing is written: %w", err)
		}
	}
	return nil
}

// stage writes the text of a file under a temporary name next to it. After a crash
// that file stays, and its name says what it is.
func stage(name, text string) (temp string, err error) {
	mode := newFileMode
	if info, err := os.Stat(name); err == nil {
		if mode = info.Mode().Perm(); mode&0o200 == 0 {
			return "", &fs.PathError{Op: "write", Path: name, Err: fs.ErrPermission}
		}
		if real, err := filepath.EvalSymlinks(name); err != nil || real != filepath.Clean(name) && isLink(name) {
			return "", &fs.PathError{Op: "write", Path: name, Err: errors.New("is a symbolic link")}
		}
	} else if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".unwire-partial-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// restore gives a file back what it was before.
func restore(name string, file File) error {
	if file.New {
		return os.Remove(name)
	}
	return os.WriteFile(name, []byte(file.Before), newFileMode)
}
