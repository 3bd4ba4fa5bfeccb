package archive

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"io"

	"github.com/ulikunitz/xz"

	"unwire/decode/envelope"
)

// Numbers of zip compression methods that package archive/zip does not support.
const (
	zipBzip2 = 12
	zipZstd  = 93
	zipXz    = 95
)

// zip reads the members of a zip archive.
func (w *walk) zip(data []byte) error {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))

	// Some errors, such as unsafe paths, come with a usable reader.
	if err != nil && zr == nil {
		return err
	}

	// The project's own decompressor limits memory and reports malformed data.
	zr.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser { return opened(decompress(envelope.RawDeflate, r)) })
	zr.RegisterDecompressor(zipBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	zr.RegisterDecompressor(zipZstd, func(r io.Reader) io.ReadCloser { return opened(decompress("zstd", r)) })
	zr.RegisterDecompressor(zipXz, func(r io.Reader) io.ReadCloser { return opened(openXz(r)) })

	read := int64(0)
	for _, f := range zr.File {
		if err := w.begin(); err != nil {
			return err
		}
		if !f.Mode().IsRegular() {
			continue
		}
		if err := w.zipFile(f); err != nil {
			return err
		}
		// The sizes in the directory may be wrong.
		read += int64(min(f.CompressedSize64, uint64(len(data))))
		w.At(min(read, int64(len(data))))
	}
	return nil
}

// zipFile passes one member of a zip archive to the Visitor.
func (w *walk) zipFile(f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		w.Broken(f.Name, err)
		return nil
	}
	defer r.Close()
	size := int64(-1)
	// Larger sizes are invalid and count as unknown.
	if f.UncompressedSize64 < 1<<62 {
		size = int64(f.UncompressedSize64)
	}
	return w.stream(f.Name, r, size)
}

// failed is a reader that always returns the error err. archive/zip requires a reader even if no decompressor
// could be opened.
type failed struct {
	// err is the error that every Read returns.
	err error
}

// Read always returns the error.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// opened returns r as a ReadCloser; if err is not nil, a reader that returns err.
func opened(r io.Reader, err error) io.ReadCloser {
	if err != nil {
		return io.NopCloser(failed{err})
	}
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

// maxWindow is the maximum size in bytes of a decompressor's window or dictionary.
const maxWindow = 128 << 20

// decompress opens a decompressor for an HTTP content encoding such as "gzip" or "zstd".
func decompress(encoding string, r io.Reader) (io.Reader, error) {
	d := envelope.Decompressor{MaxWindow: maxWindow}
	out, err := d.Open(encoding, r)
	if err != nil {
		return nil, err
	}
	return &decompressed{out, &d}, nil
}

// decompressed is a reader that returns its decompressor to a pool when it is closed.
type decompressed struct {
	// Reader yields the decompressed content of the member.
	io.Reader
	// d is the decompressor that Close releases.
	d *envelope.Decompressor
}

// Close releases the decompressor.
func (r *decompressed) Close() error {
	r.d.Close()
	return nil
}

// xzDictionary returns the size in bytes of the dictionary that the first block of an xz file requires, or 0.
func xzDictionary(data []byte) int64 {
	// The stream header has 12 bytes.
	const first = 12
	if len(data) < first+2 {
		return 0
	}
	header := data[first:min(len(data), first+4+4*int(data[first]))]
	// The filter LZMA2 has one byte of properties, which encodes the size.
	i := bytes.Index(header, []byte{0x21, 1})
	if i < 0 || i+2 >= len(header) || header[i+2] > 40 {
		return 0
	}
	p := header[i+2]
	return int64(2|p&1) << (p/2 + 11)
}

// openXz opens an xz stream. The dictionary grows as needed.
func openXz(r io.Reader) (io.Reader, error) {
	return xz.ReaderConfig{DictCap: 8 << 20}.NewReader(r)
}
