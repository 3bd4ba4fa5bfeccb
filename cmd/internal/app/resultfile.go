package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/store"
)

// A result gets its name when it is complete. Until then it is written under a
// temporary one in the same folder, which is removed on an error and on an
// interrupt. After a crash it stays, and its name says what it is.

// Who may read a file that is written.
const (
	ForOwner os.FileMode = 0o600 // what was captured
	ForAll   os.FileMode = 0o644 // what was concluded from it
)

// partialPattern is the pattern of a result's temporary name, as os.CreateTemp has
// it: .NAME.unwire-partial-123456.
func partialPattern(name string) string { return "." + filepath.Base(name) + ".unwire-partial-*" }

// WholeFile writes a file that replaces what was there when it is complete. What
// is there and no regular file, a device or a pipe, is written to as it is.
func WholeFile(name string, mode os.FileMode, write func(io.Writer) error) error {
	defer SurviveFileLimit()()
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return written(f, write)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // the link stays one
	}
	f, err := createPartial(name)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(mode), written(f, write))
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// AppendFile adds data to the end of a file, which it makes, for the owner alone, if
// there is none.
func AppendFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, ForOwner)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Close()
}

// written writes a file and closes it.
func written(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// createPartial creates the file that becomes name, readable by its owner only. Its
// errors are about name.
func createPartial(name string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(name), partialPattern(name))
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w: %s", name, captures.ErrNoFolder, filepath.Dir(name))
		}
		return nil, &fs.PathError{Op: "create", Path: name, Err: pe.Err}
	}
	return f, err
}

// WholeCapture creates a capture that gets its name when write has filled it. An
// existing file is replaced.
func (a *App) WholeCapture(ctx context.Context, name string, o store.Options, write func(*store.Store) error) error {
	defer SurviveFileLimit()()
	f, err := createPartial(name)
	if err != nil {
		return err
	}
	temp := f.Name()
	complete := false
	o = a.IndexedWhenClosed(o)
	o.NoAdditions = true // nobody knows its name yet
	summarise := o.Closing
	o.Closing = func(s *store.Store) {
		if complete {
			summarise(s)
		}
	}
	store, err := store.Create(temp, o)
	if err = errors.Join(err, f.Close()); err == nil {
		err = write(store)
		complete = err == nil && ctx.Err() == nil && store.Err() == nil
		err = errors.Join(err, store.Close())
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		if log, serr := os.Stat(temp + "-wal"); serr == nil && log.Size() > 0 {
			err = fmt.Errorf("%s: its write-ahead log could not be folded into it", name)
		}
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, removeCapture(temp))
	}
	return nil
}

// removeCapture removes a capture and the files that SQLite keeps next to it.
func removeCapture(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-lock"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// WholeFolder has write fill a folder. A folder that is not there appears with all
// its files. In one that is there, each file appears or is replaced when all are
// complete, in the order of their names, so that an index can be the last.
func WholeFolder(dir string, write func(temp string) error) error {
	defer SurviveFileLimit()()
	in, existing := filepath.Dir(filepath.Clean(dir)), false
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		in, existing = dir, true
	case err == nil:
		return &fs.PathError{Op: "write", Path: dir, Err: errors.New("is no folder")}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(in, 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(in, partialPattern(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	err = write(temp)
	switch {
	case err != nil:
	case existing:
		err = moveFiles(temp, dir)
	default:
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// moveFiles moves the files of a folder to another, and removes it.
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
	return os.Remove(from)
}
