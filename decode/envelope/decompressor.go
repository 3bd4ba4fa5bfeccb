package envelope

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// RawDeflate is the name of a deflate stream without zlib's header, as in zip archives. HTTP has no name for it.
const RawDeflate = "deflate-raw"

// defaultMaxWindow is the default of Decompressor.MaxWindow.
const defaultMaxWindow = 64 << 20

// A Decompressor opens readers by content encoding. It reuses its decoders, because creating a decoder costs
// more than decompressing a small message. The zero value is ready to use.
type Decompressor struct {
	// MaxWindow bounds the window size of a zstd frame, in bytes, and so the decoder's memory. The default is 64
	// MiB. A value other than 0 also makes the decoder use more memory for speed, which suits large files. It
	// takes effect when the first zstd frame is opened.
	MaxWindow uint64

	// gzip is the reused decoder of gzip; nil until the first use.
	gzip *gzip.Reader

	// br is the reused decoder of Brotli (content encoding "br"); nil until the first use.
	br *brotli.Reader

	// zstd is the reused decoder of Zstandard; nil until the first use.
	zstd *zstd.Decoder
}

// Known reports whether encoding, as named in an HTTP header, can be decompressed.
func Known(encoding string) bool {
	switch encoding {
	case "gzip", "x-gzip", "br", "zstd", "deflate":
		return true
	}
	return false
}

// Open returns a reader of the decompressed bytes of src. It is valid until the next call.
//
// Shape: if src is an io.ByteReader, the reader does not read bytes of src after the end of the compressed data.
//
// Limits: only memory is bounded. The caller bounds how much is read.
//
// Errors: an unknown encoding, or data that does not begin as the encoding requires.
func (d *Decompressor) Open(encoding string, src io.Reader) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		if d.gzip == nil {
			d.gzip = new(gzip.Reader)
		}
		return d.gzip, d.gzip.Reset(src)
	case "br":
		if d.br == nil {
			d.br = new(brotli.Reader)
		}
		return d.br, d.br.Reset(src)
	case "zstd":
		return d.openZstd(src)
	case "deflate":
		return openDeflate(src)
	case RawDeflate:
		return flate.NewReader(src), nil
	}
	return nil, unknownError(encoding)
}

// unknownError returns the error for an encoding that cannot be decompressed.
func unknownError(encoding string) error {
	return fmt.Errorf("unknown compression %q", encoding)
}

// openZstd opens a zstd decoder that runs in the reading goroutine, so that it starts no goroutines of
// its own.
func (d *Decompressor) openZstd(src io.Reader) (io.Reader, error) {
	if d.zstd != nil {
		return d.zstd, d.zstd.Reset(src)
	}
	var err error
	d.zstd, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(d.MaxWindow == 0), zstd.WithDecoderMaxWindow(cmp.Or(d.MaxWindow, defaultMaxWindow)))
	if err != nil {
		return nil, err
	}
	return d.zstd, nil
}

// openDeflate accepts both meanings of "deflate": zlib's format, as specified, and a raw deflate stream, which
// some servers send instead.
func openDeflate(src io.Reader) (io.Reader, error) {
	b := bufio.NewReader(src)
	head, _ := b.Peek(2)
	// RFC 1950: compression method 8, and the first two bytes are a multiple of 31.
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// Close releases resources other than memory, such as goroutines of decoders. The Decompressor may be used again.
func (d *Decompressor) Close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}
