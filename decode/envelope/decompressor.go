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

// RawDeflate is the encoding of a deflate stream without zlib's header, which no HTTP
// header names: that of zip archives.
const RawDeflate = "deflate-raw"

const defaultMaxWindow = 64 << 20

// A Decompressor opens readers by content encoding. It keeps the decoders for the next
// message: making one costs more than inflating a small message does. The zero value
// is ready to use.
type Decompressor struct {
	// MaxWindow bounds the bytes that a zstd frame may look back; default 64 MiB. One
	// that is given is for files: the decoder then takes memory for speed. It is read
	// when the first frame is opened.
	MaxWindow uint64

	gzip *gzip.Reader
	br   *brotli.Reader
	zstd *zstd.Decoder
}

// Known reports whether an encoding, as an HTTP header names it, can be opened.
func Known(encoding string) bool {
	switch encoding {
	case "gzip", "x-gzip", "br", "zstd", "deflate":
		return true
	}
	return false
}

// Open returns a reader of the decompressed bytes of src. It is there until the next
// call.
//
// Shape: a src that is an io.ByteReader is not read beyond the end of its data.
// Limits: only memory is bounded; the caller bounds how much is read.
// Errors: of an unknown encoding, and of a beginning that is not of that encoding.
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

func unknownError(encoding string) error {
	return fmt.Errorf("compression %q is not known", encoding)
}

// openZstd has the decoder run in the goroutine that reads, and nowhere else.
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

// openDeflate reads what "deflate" means by the specification, zlib, and what some
// servers send instead, a bare deflate stream.
func openDeflate(src io.Reader) (io.Reader, error) {
	b := bufio.NewReader(src)
	head, _ := b.Peek(2)
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// Close frees what holds more than memory. The Decompressor may be used again.
func (d *Decompressor) Close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}
