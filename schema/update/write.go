package update

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"unwire/captures/atomicfile"
)

// newFileMode is the permission mode of new files.
const newFileMode os.FileMode = 0o644

// WriteFiles replaces files in dir, all or none: each is written to a temporary file in its folder before any
// of them is renamed. If the process is killed meanwhile, each file is either old or new, and the same update
// can be written again.
//
// Errors: files without write permission, and symbolic links.
func WriteFiles(dir string, files []File) error {
	// The evidence file comes first. What it knows already is written to the others by the next update, but elements
	// that the others have already would not get into it.
	isEvidence := func(f File) bool { return f.Name == EvidenceFile }
	files = slices.Clone(files)
	if i := slices.IndexFunc(files, isEvidence); i > 0 {
		evidence := files[i]
		files = slices.Insert(slices.Delete(files, i, i+1), 0, evidence)
	}
	staged := make([]*atomicfile.File, 0, len(files))
	discard := func(list []*atomicfile.File) {
		for _, f := range list {
			f.Discard() //nolint:errcheck // the error that led here is the one to report
		}
	}
	for _, file := range files {
		f, err := stage(filepath.Join(dir, filepath.FromSlash(file.Name)), file.After)
		if err != nil {
			discard(staged)
			return fmt.Errorf("no file was changed: %w", err)
		}
		staged = append(staged, f)
	}

	// If a rename fails, the files that were replaced before get their old content back.
	for i := range files {
		if err := staged[i].Commit(); err != nil {
			discard(staged[i+1:])
			for _, back := range files[:i] {
				err = errors.Join(err, restore(filepath.Join(dir, filepath.FromSlash(back.Name)), back))
			}
			return fmt.Errorf("no file was changed: %w", err)
		}
	}
	return nil
}

// stage writes text to a temporary file next to the file called name, and flushes it to the disk.
func stage(name, text string) (*atomicfile.File, error) {
	mode := newFileMode
	if info, err := os.Stat(name); err == nil {
		if mode = info.Mode().Perm(); mode&0o200 == 0 {
			return nil, &fs.PathError{Op: "write", Path: name, Err: fs.ErrPermission}
		}
		if real, err := filepath.EvalSymlinks(name); err != nil || real != filepath.Clean(name) && isLink(name) {
			return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("the file is a symbolic link, which unwire does not replace")}
		}
	} else if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync()); err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// isLink reports whether a path is a symbolic link.
func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// restore writes the old content of a file back after a failed update, or removes a new file.
func restore(name string, file File) error {
	if file.New {
		return os.Remove(name)
	}
	f, err := stage(name, file.Before)
	if err != nil {
		return err
	}
	return f.Commit()
}
