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

const (
	maxIndex = 256 << 20 // bytes of an asar's index
	maxDepth = 256       // of folders
)

// An asarEntry is a file or folder in the index of an asar.
type asarEntry struct {
	Files    map[string]*asarEntry `json:"files"`
	Size     int64                 `json:"size"`
	Offset   string                `json:"offset"`
	Unpacked bool                  `json:"unpacked"`
	Link     string                `json:"link"`
}

// asar reads an archive of Electron: the length of a Pickle in a Pickle, and in
// that the index as JSON; the files' bytes follow it. Files that are unpacked
// stand in a folder beside it, and are no members.
func (w *walk) asar(data []byte) error {
	if len(data) < 16 {
		return errors.New("no header")
	}
	base := 8 + int64(binary.LittleEndian.Uint32(data[4:]))
	size := int64(binary.LittleEndian.Uint32(data[12:]))
	if base > int64(len(data)) || 16+size > base || size > maxIndex {
		return fmt.Errorf("its index of %d bytes is not in it", size)
	}
	// data may be unmapped before a run that was interrupted ends
	index := bytes.Clone(data[16 : 16+size])
	root, err := interrupt.Run(w.ctx, func() (*asarEntry, error) {
		root := &asarEntry{}
		return root, json.Unmarshal(index, root)
	})
	if err != nil {
		return fmt.Errorf("its index: %w", err)
	}
	return w.asarFolder("", root, data[base:], 0)
}

func (w *walk) asarFolder(dir string, folder *asarEntry, data []byte, depth int) error {
	if depth > maxDepth {
		w.Broken(dir, fmt.Errorf("folders are more than %d deep", maxDepth))
		return nil
	}
	for _, base := range slices.Sorted(maps.Keys(folder.Files)) {
		e, name := folder.Files[base], path.Join(dir, base)
		if err := w.begin(); err != nil {
			return err
		}
		switch {
		case e == nil || e.Link != "" || e.Unpacked:
		case e.Files != nil:
			if err := w.asarFolder(name, e, data, depth+1); err != nil {
				return err
			}
		default:
			at, err := strconv.ParseInt(e.Offset, 10, 64)
			if err != nil || at < 0 || e.Size < 0 || at > int64(len(data)) || e.Size > int64(len(data))-at {
				w.Broken(name, fmt.Errorf("%d bytes at %q are not in the archive", e.Size, e.Offset))
				continue
			}
			if err := w.plain(name, data[at:at+e.Size:at+e.Size]); err != nil {
				return err
			}
			w.At(at + e.Size)
		}
	}
	return nil
}
