package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"unwire/schema/interrupt"
)

// Limits of an asar archive, the format that Electron uses for applications.
const (
	// maxIndex is the maximum size in bytes of the index, which lists the files in the archive.
	maxIndex = 256 << 20
	// maxDepth is the maximum nesting of folders.
	maxDepth = 256
)

// An asarEntry is a file or folder in the index of an asar archive.
type asarEntry struct {
	// Files are the entries of a folder by name; nil for a file.
	Files map[string]*asarEntry `json:"files"`
	// Size is the size of a file in bytes.
	Size int64 `json:"size"`
	// Offset is the decimal offset of the file's content, in bytes from the end of the index.
	Offset string `json:"offset"`
	// Unpacked is set if the file is stored outside of the archive.
	Unpacked bool `json:"unpacked"`
	// Link is the target of a symbolic link; "" for other entries.
	Link string `json:"link"`
}

// asar reads an archive of the Electron framework. It begins with a header in Chromium's Pickle format, which
// contains the index as JSON; the contents of the files follow. Files marked as unpacked are stored in a folder
// next to the archive and are not read.
func (w *walk) asar(data []byte) error {
	if len(data) < 16 {
		return errors.New("the header of the archive is missing")
	}
	// Offsets of files are relative to the end of the index.
	base := 8 + int64(binary.LittleEndian.Uint32(data[4:]))
	size := int64(binary.LittleEndian.Uint32(data[12:]))
	if base > int64(len(data)) || 16+size > base || size > maxIndex {
		return fmt.Errorf("the archive does not contain its index of %d bytes", size)
	}
	// data may be unmapped before an interrupted run ends.
	index := bytes.Clone(data[16 : 16+size])
	root, err := interrupt.Run(w.ctx, func() (*asarEntry, error) {
		root := &asarEntry{}
		return root, json.Unmarshal(index, root)
	})
	if err != nil {
		return fmt.Errorf("the index of the archive is malformed: %w", err)
	}

	a := &asarWalk{walk: w, data: data[base:], spans: map[asarSpan]bool{}}
	return a.folder("", root, 0)
}

// An asarWalk is the state of reading one asar archive.
type asarWalk struct {
	// walk is the state that all archive formats have in common, such as the callbacks and the limits.
	*walk
	// data is the content of the asar archive after its index.
	data []byte
	// spans are the byte ranges of the members visited so far.
	spans map[asarSpan]bool
	// total is the sum of the sizes in spans, in bytes.
	total int64
}

// An asarSpan is the byte range of one member's content: offset is relative to the end of the index, and both
// are in bytes.
type asarSpan struct {
	// offset is where the content begins, in bytes after the end of the archive's index.
	offset int64

	// size is the size of the content in bytes.
	size int64
}

// maxShared limits overlapping members: the sum of their sizes may be this many times the size of the archive.
const maxShared = 2

// claim counts the byte range of a member. Members may share the same range, which is counted once; if ranges
// overlap otherwise, the sum soon exceeds the limit, as in an archive bomb.
func (w *asarWalk) claim(span asarSpan) error {
	if w.spans[span] {
		return nil
	}
	w.spans[span] = true
	if w.total += span.size; w.total > maxShared*int64(len(w.data)) {
		return fmt.Errorf("%w: the members overlap", ErrBomb)
	}
	return nil
}

// folder visits all files in a folder of an asar archive, recursively. dir is the folder's path.
func (w *asarWalk) folder(dir string, folder *asarEntry, depth int) error {
	if depth > maxDepth {
		w.Broken(dir, fmt.Errorf("folders are nested more than %d deep", maxDepth))
		return nil
	}
	for _, base := range slices.Sorted(maps.Keys(folder.Files)) {
		e, name := folder.Files[base], path.Join(dir, base)
		if err := w.begin(); err != nil {
			return err
		}

		// Links and unpacked files have no content in the archive.
		switch {
		case e == nil || e.Link != "" || e.Unpacked:
		case e.Files != nil:
			if err := w.folder(name, e, depth+1); err != nil {
				return err
			}
		default:
			at, err := strconv.ParseInt(e.Offset, 10, 64)
			if err != nil || at < 0 || e.Size < 0 || at > int64(len(w.data)) || e.Size > int64(len(w.data))-at {
				w.Broken(name, fmt.Errorf("the archive lacks the %d bytes at %q", e.Size, e.Offset))
				continue
			}
			if err := w.claim(asarSpan{at, e.Size}); err != nil {
				return err
			}
			if err := w.plain(name, w.data[at:at+e.Size:at+e.Size]); err != nil {
				return err
			}
			w.At(at + e.Size)
		}
	}
	return nil
}
