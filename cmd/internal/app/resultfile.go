package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"unwire/captures/atomicfile"
	"unwire/captures/store"
)

// A result gets its name when it is complete: see package atomicfile. Its temporary file is removed on an error and
// on an interrupt; after a crash, by the next command that writes the same result.

// Permissions of the files that unwire writes.
const (
	ForOwner os.FileMode = 0o600 // what was captured
	ForAll   os.FileMode = 0o644 // what was concluded from it
)

// WholeFile writes a file atomically: the new file replaces an old one only when it is complete. A
// device or a pipe is written to directly.
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
	f, err := atomicfile.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(f.Chmod(mode), write(w), w.Flush()); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// AppendFile appends data to a file. A new file is readable by its owner only.
func AppendFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, ForOwner)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return f.Close()
}

// written calls write with a buffered writer for f, and then closes f.
func written(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// WholeCapture creates a capture atomically: write fills a temporary file, which replaces the file called
// name only if write and closing succeed.
func (a *App) WholeCapture(ctx context.Context, name string, o store.Options, write func(*store.Store) error) error {
	defer SurviveFileLimit()()
	f, err := atomicfile.Create(name)
	if err != nil {
		return err
	}
	temp := f.Name()
	complete := false
	o = a.IndexedWhenClosed(o)
	o.NoAdditions = true // nobody knows its name yet
	// Summaries are worth their time only for a capture that is complete.
	summarise := o.Closing
	o.Closing = func(s *store.Store) {
		if complete {
			summarise(s)
		}
	}
	store, err := store.Create(temp, o)
	if err == nil {
		err = write(store)
		complete = err == nil && ctx.Err() == nil && store.Err() == nil
		err = errors.Join(err, store.Close())
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		// A write-ahead log that could not be merged would be lost by the rename.
		if log, serr := os.Stat(temp + "-wal"); serr == nil && log.Size() > 0 {
			err = fmt.Errorf("%s: cannot merge SQLite's write-ahead log into the file", name)
		}
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// WholeFolder creates a folder atomically: write fills a temporary folder, which replaces dir only if
// write succeeds; see package atomicfile.
func WholeFolder(dir string, write func(temp string) error) error {
	defer SurviveFileLimit()()
	f, err := atomicfile.CreateFolder(dir)
	if err != nil {
		return err
	}
	if err := write(f.Path); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}
