// Package atomicfile writes files and folders that appear under their names when they are complete. Whoever is
// killed, or finds the disk full, leaves what was there before.
//
//	f, err := atomicfile.Create("a.har")
//	_, err = io.Copy(f, result)
//	err = f.Commit() // or f.Discard()
//
// Until Commit, a file is written under a temporary name in the same folder, .NAME.unwire-partial-123456. Commit
// flushes it to the disk before it renames it, since some file systems rename first. A process that is killed leaves
// its temporary file, whose lock the system releases: the next Create of the same name removes it.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"unwire/captures"
)

// marker is part of the names of temporary files, ".<result's name>.unwire-partial-<random number>", by which
// removeAbandoned recognises them.
const marker = ".unwire-partial-"

// temporaryName matches the name of a temporary file; its first group is the name of the result.
var temporaryName = regexp.MustCompile(`\.([^/\\]+)` + regexp.QuoteMeta(marker) + `[0-9]+`)

// ResultNames replaces the names of temporary files in the text of an error by the names of their results, which the
// user knows.
func ResultNames(text string) string { return temporaryName.ReplaceAllString(text, "$1") }

// sqliteSuffixes are the suffixes, after the name of a capture, of the companion files that SQLite and the
// recorder create in its folder.
var sqliteSuffixes = [...]string{"-wal", "-shm", "-journal", "-lock"}

// A File is a temporary file that only its owner can read. Commit renames it to its final name.
type File struct {
	// The embedded file is the open temporary file, into which the caller writes the content.
	*os.File

	// target is the final name of the file.
	target string
}

// Create creates a temporary file in the folder of target. It first deletes temporary files for the same target
// that killed processes left behind.
//
// Errors: captures.ErrNoFolder if the folder of target does not exist. Messages name target, not the temporary
// file.
func Create(target string) (*File, error) {
	removeAbandoned(target)
	// Another process may take the file for abandoned before it is locked. Where files cannot be locked, nobody does.
	const tries = 3
	for n := 1; ; n++ {
		f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+marker+"*")
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%s: %w: %s", target, captures.ErrNoFolder, filepath.Dir(target))
			}
			return nil, &fs.PathError{Op: "create", Path: target, Err: pe.Err}
		}
		if err != nil {
			return nil, err
		}
		if tryLock(f) && isThere(f) || n == tries && isThere(f) {
			return &File{f, target}, nil
		}
		f.Close() //nolint:errcheck // it is empty
		if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) || n == tries {
			return nil, errors.Join(err, fmt.Errorf("%s: another process is removing its temporary files", target))
		}
	}
}

// isThere reports whether an open file still exists under its name, i.e. was not deleted or replaced.
func isThere(f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(ours, there)
}

// Commit syncs the file to disk, closes it, and renames it to its final name, replacing an existing
// file. On failure it deletes the temporary file.
func (f *File) Commit() error {
	err := f.Sync()
	if err == nil && renamesOpenFiles() {
		// The lock is kept until the file has its name, so that nobody takes it for abandoned.
		err = errors.Join(os.Rename(f.Name(), f.target), f.Close())
	} else if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.target)
	}
	if err != nil {
		return errors.Join(err, removeFiles(f.Name()))
	}
	syncFolder(filepath.Dir(f.target))
	return nil
}

// Discard closes and deletes the temporary file.
func (f *File) Discard() error { return errors.Join(f.Close(), removeFiles(f.Name())) }

// removeFiles deletes a temporary file and, if it is a capture, its companion files.
func removeFiles(name string) error {
	var errs []error
	for _, name := range append([]string{name}, companions(name)...) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// companions returns the names of the files that SQLite and the recorder create next to a capture, whether or
// not they exist.
func companions(name string) []string {
	var names []string
	for _, suffix := range sqliteSuffixes {
		names = append(names, name+suffix)
	}
	return names
}

// A Folder is a temporary folder. The caller writes files into it, and Commit moves them to the final folder.
type Folder struct {
	// Path is the path of the temporary folder into which the caller writes.
	Path string

	// target is the path of the final folder, to which Commit moves the files.
	target string
	// existing means that the final folder existed already when this temporary folder was created.
	existing bool

	// lock is the open, locked folder. The lock shows other processes that the folder is in use.
	lock *os.File
}

// CreateFolder creates and locks a temporary folder: inside target if that exists, otherwise next to it. It
// creates missing parent folders.
func CreateFolder(target string) (*Folder, error) {
	target = filepath.Clean(target)
	f := &Folder{target: target}

	// The temporary folder must be on the same file system as the result: inside an existing folder, or next to
	// a new one.
	in := filepath.Dir(target)
	switch info, err := os.Stat(target); {
	case err == nil && info.IsDir():
		in, f.existing = target, true
	case err == nil:
		return nil, &fs.PathError{Op: "write", Path: target, Err: errors.New("a file already has this name, so no folder can be created")}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, err
	}

	removeAbandoned(filepath.Join(in, filepath.Base(target)))
	temp, err := os.MkdirTemp(in, "."+filepath.Base(target)+marker+"*")
	if err != nil {
		return nil, err
	}

	// The lock shows other processes that the folder is in use, so that they do not remove it.
	f.Path = temp
	if f.lock, err = os.Open(temp); err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	tryLock(f.lock)
	return f, nil
}

// Commit flushes the files to disk and moves them to the final folder. If the final folder is new, it appears
// with all its files at once. If it existed, the files are moved one by one in the order of their names,
// replacing files of the same name, so that a file whose name sorts last, such as an index, appears last.
func (f *Folder) Commit() error {
	err := syncFiles(f.lock)
	if !renamesOpenFiles() {
		f.lock.Close() //nolint:errcheck // it is only read
	}
	switch {
	case err != nil:
	case f.existing:
		err = moveFiles(f.Path, f.target)
	default:
		err = os.Rename(f.Path, f.target)
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	f.lock.Close() //nolint:errcheck // it is only read
	syncFolder(filepath.Dir(f.target))
	return nil
}

// Discard deletes the temporary folder.
func (f *Folder) Discard() error {
	err := os.RemoveAll(f.Path)
	f.lock.Close() //nolint:errcheck // it is only read
	return err
}

// moveFiles moves all files of one folder to another, and deletes the empty folder.
func moveFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	syncFolder(to)
	return os.Remove(from)
}

// removeAbandoned deletes temporary files and folders for target that killed processes left behind. Errors are
// ignored, because leftovers do no harm.
func removeAbandoned(target string) {
	dir := filepath.Dir(target)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(target)+marker)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		name := filepath.Join(dir, e.Name())
		switch {
		case !isAbandoned(name, e.IsDir()):
		case e.IsDir():
			_ = os.RemoveAll(name)
		default:
			_ = removeFiles(name)
		}
	}
}

// isAbandoned reports whether the process that wrote a temporary file or folder has ended, i.e. nobody locks
// it.
func isAbandoned(name string, isFolder bool) bool {
	if !hasLocks {
		// Removing an open file fails.
		return !isFolder
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return tryLock(f)
}

// renamesOpenFiles reports whether the operating system can rename files that are open; Windows cannot.
func renamesOpenFiles() bool { return runtime.GOOS != "windows" }

// syncFiles flushes the files of a folder to disk. If possible, it flushes the whole file system with one call,
// because flushing ten thousand files one by one takes a minute.
func syncFiles(dir *os.File) error {
	if ok, err := syncFileSystem(dir); ok {
		return err
	}
	return filepath.WalkDir(dir.Name(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// syncFolder flushes the names of a folder's files to disk. It ignores errors, because some systems cannot do
// this; after a power failure, a new name may then be missing.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		f.Close() //nolint:errcheck // it is only read
	}
}
