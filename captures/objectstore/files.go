package objectstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files is a Store for local files. Keys are paths.
type files struct {
	// url means that URLs of files are written as file://PATH; otherwise they are plain paths.
	url bool
}

// URL returns the path of a file, as file://PATH if the store was opened with such a URL.
func (f files) URL(key string) string {
	if f.url {
		return "file://" + key
	}
	return filepath.FromSlash(key)
}

// List returns the files whose paths begin with prefix. It walks the deepest folder that contains all of them.
func (f files) List(ctx context.Context, prefix string) ([]Object, error) {
	// Start at the deepest folder that all matching files share, so that the walk does not read the
	// whole disk.
	root := prefix
	if !strings.HasSuffix(prefix, "/") {
		root = prefix[:strings.LastIndexByte(prefix, '/')+1]
	}
	if root == "" {
		root = "."
	}
	var list []Object
	err := filepath.WalkDir(filepath.FromSlash(root), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile, or there is no such folder
		case err != nil:
			return err
		case d.IsDir():
			return ctx.Err()
		}

		// The prefix need not end at a folder: report/2026 also lists report/2026-01.pb.
		key := filepath.ToSlash(name)
		if !strings.HasPrefix(key, strings.TrimPrefix(prefix, "./")) && !strings.HasPrefix(key, filepath.ToSlash(filepath.Clean(prefix))) {
			return nil
		}

		// Sockets, devices and symbolic links are not objects.
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		list = append(list, Object{Key: key, Size: info.Size()})
		return nil
	})
	return list, err
}

// Open opens the file whose path is key, for reading.
func (f files) Open(_ context.Context, key string) (io.ReadCloser, error) {
	return os.Open(filepath.FromSlash(key))
}

// Stat returns the size of the file whose path is key.
func (f files) Stat(_ context.Context, key string) (Object, error) {
	info, err := os.Stat(filepath.FromSlash(key))
	if err != nil {
		return Object{}, err
	}
	if info.IsDir() {
		return Object{}, &fs.PathError{Op: "read", Path: key, Err: errors.New("the path is a folder, not a file")}
	}
	return Object{Key: key, Size: info.Size()}, nil
}

// Put writes a file atomically, under a temporary name that it then changes to key.
func (f files) Put(ctx context.Context, key string, r io.ReaderAt, size int64) (err error) {
	name := filepath.FromSlash(key)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".unwire-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if _, err := io.Copy(temp, contextReader{ctx, io.NewSectionReader(r, 0, size)}); err != nil {
		return errors.Join(err, temp.Close())
	}
	// The content must be on the disk before its name is.
	if err := temp.Sync(); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}

// Remove removes the file whose path is key. It is no error if there is none.
func (f files) Remove(_ context.Context, key string) error {
	if err := os.Remove(filepath.FromSlash(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A contextReader reads from r, but fails once its context has ended.
type contextReader struct {
	// ctx is the context whose end makes reads fail.
	ctx context.Context
	// r is the reader from which the data comes.
	r io.Reader
}

// Read reads from the underlying reader, or returns the error of the ended context.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
