package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/filesystem/squashfs"

	"unwire/schema/interrupt"
)

// appImage reads the SquashFS filesystem that follows the executable of an AppImage.
//
// Source: the AppImage specification, type 2
func (w *walk) appImage(data []byte) error {
	at := elfEnd(data)
	if at <= 0 || at > int64(len(data)) || Detect(data[at:]) != kindSquashfs {
		// Signatures or other data lie in between: search for a superblock of version 4.
		at = -1
		for from := 0; ; {
			i := interrupt.Index(w.ctx, data[from:], []byte("hsqs"))
			if i < 0 {
				break
			}
			if from += i; len(data)-from > 32 && binary.LittleEndian.Uint32(data[from+28:]) == 4 {
				at = int64(from)
				break
			}
			from += 4
		}
	}
	if at < 0 {
		return errors.New("the executable is not followed by a squashfs image")
	}
	return w.squashfs(data[at:])
}

// elfEnd returns the offset of the end of an ELF executable, which is the end of its section headers. It
// returns -1 if data is too short.
func elfEnd(data []byte) int64 {
	if len(data) < 64 {
		return -1
	}
	var o binary.ByteOrder = binary.LittleEndian
	if data[5] == 2 {
		o = binary.BigEndian
	}
	if data[4] == 1 {
		return int64(o.Uint32(data[32:])) + int64(o.Uint16(data[46:]))*int64(o.Uint16(data[48:]))
	}
	return int64(o.Uint64(data[40:])) + int64(o.Uint16(data[58:]))*int64(o.Uint16(data[60:]))
}

// plausibleSquash reports whether data begins with a SquashFS superblock of version 4 whose sizes are
// plausible.
func plausibleSquash(data []byte) bool {
	if len(data) < 96 {
		return false
	}
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(data[at:])) }
	block := u32(12)
	size := int64(len(data))
	return u32(4) <= maxMembers && u32(16) <= maxMembers && block >= 4096 && block <= 1<<20 && block&(block-1) == 0 &&
		binary.LittleEndian.Uint64(data[40:]) <= uint64(size)
}

// squashfs reads the files of a SquashFS filesystem image.
func (w *walk) squashfs(data []byte) (err error) {
	if !plausibleSquash(data) {
		return errors.New("the squashfs version is not supported: only version 4 is")
	}

	// The library panics on malformed images.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the squashfs image is damaged: %v", p)
		}
	}()
	w.size = int64(len(data))
	sq, err := squashfs.Read(&image{bytes.NewReader(data), w.ctx}, int64(len(data)), 0, 0)
	if err != nil {
		return err
	}
	return w.squashFolder(sq, "/", 0)
}

// squashFolder visits all files in a folder of a SquashFS image, recursively. dir is the folder's path.
func (w *walk) squashFolder(sq *squashfs.FileSystem, dir string, depth int) error {
	if depth > maxDepth {
		w.Broken(dir, fmt.Errorf("folders are nested more than %d deep", maxDepth))
		return nil
	}

	// A folder that cannot be read is reported like a member.
	list, err := sq.ReadDir(dir)
	if err != nil {
		w.Broken(dir, err)
		return nil
	}
	for _, info := range list {
		if err := w.begin(); err != nil {
			return err
		}
		name := path.Join(dir, info.Name())
		switch {
		case info.Name() == "." || info.Name() == "..":
		case info.IsDir():
			if err := w.squashFolder(sq, name, depth+1); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if err := w.squashFile(name, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// squashFile visits one file of a SquashFS image.
func (w *walk) squashFile(name string, info fs.FileInfo) error {
	entry, ok := info.(interface {
		Open() (filesystem.File, error)
	})
	if !ok {
		return nil
	}
	f, err := entry.Open()
	if err != nil {
		w.Broken(name, err)
		return nil
	}
	defer f.Close()
	w.done += info.Size()
	w.At(min(w.done, w.size))
	return w.stream(strings.TrimPrefix(name, "/"), &counted{f, w}, info.Size())
}

// An image lets the SquashFS library read a filesystem that is in memory.
type image struct {
	// Reader reads the bytes of the filesystem; the embedding type makes it fail once ctx is canceled.
	*bytes.Reader
	// ctx ends the library's work: reads fail after it is canceled.
	ctx context.Context
}

// ReadAt reads from memory. It fails once the context is canceled, which makes the library stop.
func (i *image) ReadAt(b []byte, at int64) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.ReadAt(b, at)
}

// Stat returns the size of the image as that of a file.
func (i *image) Stat() (fs.FileInfo, error) { return imageInfo{i.Size()}, nil }

// Close does nothing, because the image is in memory.
func (i *image) Close() error { return nil }

// Sys returns an error, because no operating system file exists.
func (i *image) Sys() (*os.File, error) { return nil, backend.ErrNotSuitable }

// Writable returns an error, because the image is read-only.
func (i *image) Writable() (backend.WritableFile, error) { return nil, backend.ErrIncorrectOpenMode }

// An imageInfo is the fs.FileInfo of an image in memory; size is its size in bytes.
type imageInfo struct {
	// size is the size of the image in bytes.
	size int64
}

// Name returns a constant name, because the image has no file.
func (imageInfo) Name() string { return "squashfs" }

// Size returns the size of the image in bytes.
func (i imageInfo) Size() int64 { return i.size }

// Mode returns a read-only mode.
func (imageInfo) Mode() fs.FileMode { return 0o400 }

// ModTime returns the zero time.
func (imageInfo) ModTime() time.Time { return time.Time{} }

// IsDir returns false.
func (imageInfo) IsDir() bool { return false }

// Sys returns nil.
func (imageInfo) Sys() any { return nil }
