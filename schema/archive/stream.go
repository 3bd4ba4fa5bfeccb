package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// tarBlock is the size in bytes of a tar header.
const tarBlock = 512

// compressed reads a compressed file in one of the formats gzip, bzip2, xz and zstd. If it contains a tar
// archive, its members are visited; otherwise the whole content is one member.
func (w *walk) compressed(kind Kind, data []byte) error {
	in := &position{r: bytes.NewReader(data), at: w.At}
	var r io.Reader
	var err error
	switch kind {
	case kindGzip:
		r, err = decompress("gzip", in)
	case kindBzip2:
		r = bzip2.NewReader(in)
	case kindXz:
		// The library allocates the dictionary at once.
		if dict := xzDictionary(data); dict > maxWindow {
			return fmt.Errorf("the dictionary of the compressed data has %d bytes; the limit is %d", dict, maxWindow)
		}
		r, err = openXz(bufio.NewReader(in))
	case kindZstd:
		r, err = decompress("zstd", in)
	default:
		return fmt.Errorf("the archive type %q is unknown", kind)
	}
	if err != nil {
		return err
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}

	br := bufio.NewReaderSize(&counted{r, w}, 64<<10)
	head, err := br.Peek(tarBlock)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	// A compressed file is either a tar or a single member.
	if Detect(head) == kindTar {
		return w.tar(br)
	}
	if err := w.begin(); err != nil {
		return err
	}
	return w.stream(strippedName(w.name), br, -1)
}

// strippedName returns the name of a compressed file without the extension of the compression, such as ".gz".
func strippedName(name string) string {
	base := path.Base(name)
	ext := path.Ext(base)
	switch strings.ToLower(ext) {
	case ".gz", ".bz2", ".xz", ".zst", ".zstd":
		return strings.TrimSuffix(base, ext)
	}
	return base
}

// tar reads the members of a tar archive.
func (w *walk) tar(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		if err := w.begin(); err != nil {
			return err
		}
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		// Links, folders and devices have no content.
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse {
			continue
		}
		if err := w.stream(h.Name, tr, h.Size); err != nil {
			return err
		}
	}
}

// counted is a reader that counts decompressed bytes against the budget and ends with the context. It is needed
// because skipped members are decompressed as well.
type counted struct {
	// r returns the decompressed bytes.
	r io.Reader
	// w has the budget and the context.
	w *walk
}

// Read reads bytes, and counts them against the budget.
func (c *counted) Read(b []byte) (int, error) {
	if err := c.w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	if bomb := c.w.budget.unpack(n); bomb != nil {
		return n, bomb
	}
	return n, err
}
