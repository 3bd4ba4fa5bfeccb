package archive

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"io"

	"github.com/ulikunitz/xz"

	"unwire/decode/envelope"
)

// Methods of compression in a zip, beside those that archive/zip has.
const (
	zipBzip2 = 12
	zipZstd  = 93
	zipXz    = 95
)

func (w *walk) zip(data []byte) error {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && zr == nil {
		return err
	}
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
		read += int64(min(f.CompressedSize64, uint64(len(data))))
		w.At(min(read, int64(len(data))))
	}
	return nil
}

func (w *walk) zipFile(f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		w.Broken(f.Name, err)
		return nil
	}
	defer r.Close()
	size := int64(-1)
	if f.UncompressedSize64 < 1<<62 {
		size = int64(f.UncompressedSize64)
	}
	return w.stream(f.Name, r, size)
}

// failed is a reader that could not be opened.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

func opened(r io.Reader, err error) io.ReadCloser {
	if err != nil {
		return io.NopCloser(failed{err})
	}
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

// maxWindow bounds the memory that a decompressor may take for its dictionary.
const maxWindow = 128 << 20

func decompress(encoding string, r io.Reader) (io.Reader, error) {
	d := envelope.Decompressor{MaxWindow: maxWindow}
	out, err := d.Open(encoding, r)
	if err != nil {
		return nil, err
	}
	return &decompressed{out, &d}, nil
}

// decompressed is a reader that frees its decoder when it is closed.
type decompressed struct {
	io.Reader
	d *envelope.Decompressor
}

func (r *decompressed) Close() error {
	r.d.Close()
	return nil
}

// xzDictionary is the size of the dictionary that the first block of an xz file
// says it needs.
func xzDictionary(data []byte) int64 {
	const first = 12 // after the stream's header
	if len(data) < first+2 {
		return 0
	}
	header := data[first:min(len(data), first+4+4*int(data[first]))]
	i := bytes.Index(header, []byte{0x21, 1}) // LZMA2, with a byte of properties
	if i < 0 || i+2 >= len(header) || header[i+2] > 40 {
		return 0
	}
	p := header[i+2]
	return int64(2|p&1) << (p/2 + 11)
}

func openXz(r io.Reader) (io.Reader, error) {
	return xz.ReaderConfig{DictCap: 8 << 20}.NewReader(r)
}
