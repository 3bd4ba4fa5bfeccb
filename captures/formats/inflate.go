package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"unwire/decode/envelope"
)

const (
	// maxInflated limits the decompressed size of an input file, in bytes. maxZstdWindow is the largest window
	// of zstd that is accepted, in bytes of memory.
	maxInflated   = 64 << 30
	maxZstdWindow = 128 << 20

	// A file may always decompress to minInflated bytes, and beyond that to inflatedRatio times its compressed
	// size. Recordings rarely compress to less than a twentieth.
	minInflated   = 16 << 20
	inflatedRatio = 32
)

// errBomb is the error for a compressed file that contains far more data than its size suggests (a
// decompression bomb).
var errBomb = errors.New("the file is much larger decompressed than compressed; if you trust it, decompress it first")

// A byteCounter passes on reads from r and counts the bytes in n.
type byteCounter struct {
	// r is the reader to which reads are passed on.
	r io.Reader
	// n is the number of bytes read so far.
	n int64
}

// Read reads from the underlying reader and counts the bytes.
func (c *byteCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// An inflated decompresses a file while reading. It can seek back to the beginning if the file can.
//
// Limits: 64 GiB, and inflatedRatio times the compressed bytes read so far, but at least minInflated.
type inflated struct {
	// compression is the name of the detected compression, such as "gzip".
	compression string
	// decoder decompresses the file.
	decoder envelope.Decompressor

	// raw is the compressed file.
	raw io.Reader
	// r reads the decompressed contents of the file.
	r io.Reader

	// at is the offset of the next byte in the decompressed data.
	at int64

	// limit is the largest allowed decompressed size in bytes.
	limit int64
	// read counts the compressed bytes that were read.
	read *byteCounter
}

// inflate detects from head, the beginning of the file in, whether the file is compressed. If so, it returns a
// reader of the decompressed contents and their first HeadBytes bytes; otherwise it returns in and head.
func inflate(in io.Reader, head []byte) (io.Reader, []byte, error) {
	compression := envelope.Sniff(head)
	if compression == "" {
		return in, head, nil
	}
	f := &inflated{compression: compression, decoder: envelope.Decompressor{MaxWindow: maxZstdWindow}, raw: in, limit: maxInflated}
	if err := f.restart(); err != nil {
		return nil, nil, err
	}

	// Detect the format of the contents.
	begin := make([]byte, HeadBytes)
	n, err := io.ReadFull(f, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, err
	}
	begin = begin[:n]

	// If possible, start over instead of keeping the beginning in memory.
	if s, ok := in.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return nil, nil, err
		}
		return f, begin, f.restart()
	}
	return io.MultiReader(bytes.NewReader(begin), onlyReader{f}), begin, nil
}

// An onlyReader hides the Seek method of a reader, so that callers read sequentially.
type onlyReader struct {
	// The embedded reader supplies Read, the only method.
	io.Reader
}

// restart starts decompressing at the current position of the file, which must be its beginning.
func (f *inflated) restart() error {
	f.read = &byteCounter{r: f.raw}
	r, err := f.decoder.Open(f.compression, bufio.NewReaderSize(f.read, 1<<16))
	if err != nil {
		return fmt.Errorf("%s: %w", f.compression, err)
	}
	f.r, f.at = r, 0
	return nil
}

// Read reads decompressed bytes. It fails beyond the limit, to stop decompression bombs.
func (f *inflated) Read(p []byte) (int, error) {
	if f.at >= f.limit {
		return 0, fmt.Errorf("%s: the file decompresses to more than %d bytes", f.compression, f.limit)
	}
	if f.at >= max(minInflated, inflatedRatio*f.read.n) {
		return 0, fmt.Errorf("%s: %w", f.compression, errBomb)
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.limit-f.at)])
	f.at += int64(n)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", f.compression, err)
	}
	return n, err
}

// Seek returns the current offset or goes back to the beginning, if the file can seek. Other offsets are errors.
func (f *inflated) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0:
		if _, ok := f.raw.(io.Seeker); !ok {
			return 0, errors.New("the input is a pipe, which can be read only once")
		}
		return f.at, nil
	case whence == io.SeekStart && offset == 0:
		s, ok := f.raw.(io.Seeker)
		if !ok {
			return 0, errors.New("the input is a pipe, which can be read only once")
		}
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		return 0, f.restart()
	}
	return 0, errors.New("a compressed file can be read only from its beginning")
}
