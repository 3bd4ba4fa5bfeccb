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
	// maxInflated limits the contents of a compressed file, in bytes. maxZstdWindow limits the memory of zstd.
	maxInflated   = 64 << 30
	maxZstdWindow = 128 << 20

	// The contents of a file that is smaller than they are may be minInflated bytes, or inflatedRatio times its
	// size. Recordings compress to more than a twentieth; reading one costs much more than decompressing it.
	minInflated   = 16 << 20
	inflatedRatio = 32
)

// errBomb reports a compressed file that contains much more than its size.
var errBomb = errors.New("the file is much larger decompressed than compressed; if you trust it, decompress it first")

// A byteCounter counts the bytes that are read of a compressed file.
type byteCounter struct {
	r io.Reader
	n int64
}

func (c *byteCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// An inflated reads the contents of a compressed file. It can seek to the beginning if the file can.
//
// Limits: 64 GiB, and inflatedRatio times what has been read of the file, but at least minInflated.
type inflated struct {
	compression string
	decoder     envelope.Decompressor
	raw         io.Reader
	r           io.Reader

	// at is the offset of the next byte in the decompressed data.
	at    int64
	limit int64
	// read counts what was read of the compressed file.
	read *byteCounter
}

// inflate returns a reader of the contents of a file, and the first HeadBytes of these. head is the beginning of
// the file; if it is not that of a compressed file, inflate returns its arguments.
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
type onlyReader struct{ io.Reader }

// restart begins to decompress at the current position of the file.
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
		return 0, fmt.Errorf("%s: more than %d bytes, decompressed", f.compression, f.limit)
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
			return 0, errors.New("a pipe")
		}
		return f.at, nil
	case whence == io.SeekStart && offset == 0:
		s, ok := f.raw.(io.Seeker)
		if !ok {
			return 0, errors.New("a pipe")
		}
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		return 0, f.restart()
	}
	return 0, errors.New("cannot seek in a compressed file, except to its beginning")
}
