package embedded

import (
	"bytes"
	"context"
	"io"

	"github.com/klauspost/compress/gzip"

	"unwire/schema/interrupt"
)

// gzipMagic are the first bytes of gzip data: two of the format and one for the method deflate, the only one in
// use.
const gzipMagic = "\x1f\x8b\x08"

// gzipHead is the number of bytes that are decompressed to see whether they begin a file descriptor. They
// include the file name.
const gzipHead = maxName + 8

// scanGzip finds file descriptors that are compressed with gzip.
func scanGzip(ctx context.Context, data []byte) []Found {
	var list []Found
	var zr gzip.Reader
	for at := 0; len(list) < maxFound; at += len(gzipMagic) {
		i := interrupt.Index(ctx, data[at:], []byte(gzipMagic))
		if i < 0 || ctx.Err() != nil {
			break
		}
		at += i
		plain := inflate(&zr, data[at:])
		if plain == nil {
			continue
		}
		if f, size := parse(plain); f != nil && size == len(plain) {
			list = append(list, Found{File: f, Form: formGzipped, Offset: at, Size: size})
		}
	}
	return list
}

// inflate decompresses the gzip data at the beginning of data. It returns nil if the result does not begin like
// a descriptor.
func inflate(zr *gzip.Reader, data []byte) []byte {
	if zr.Reset(bytes.NewReader(data)) != nil {
		return nil
	}
	// Data behind the member is something else.
	zr.Multistream(false)
	head := make([]byte, gzipHead)
	n, err := io.ReadFull(zr, head)
	if err != nil && err != io.ErrUnexpectedEOF || !startsAsDescriptor(head[:n]) {
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(zr, maxDescriptor))
	if err != nil {
		return nil
	}
	return append(head[:n], rest...)
}

// startsAsDescriptor reports whether data begins like a file descriptor, i.e. with a field for the name of a
// .proto file.
func startsAsDescriptor(data []byte) bool {
	i := bytes.Index(data, []byte(suffix))
	if i < 0 {
		return false
	}
	start, ok := nameStart(data, 0, i+len(suffix))
	return ok && start == 0
}
