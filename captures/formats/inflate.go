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
	maxInflated   = 64 << 30 // bytes of a compressed file, decompressed
	maxZstdWindow = 128 << 20
)

// An inflated reads a compressed file as what is in it.
//
// Limits: 64 GiB.
type inflated struct {
	compression string
	decoder     envelope.Decompressor
	raw         io.Reader
	r           io.Reader
	at          int64
	limit       int64
}

// inflate returns a reader of what a file holds, if it begins with head as a
// compressed one does, and the beginning of that.
func inflate(in io.Reader, head []byte) (io.Reader, []byte, error) {
	compression := envelope.Sniff(head)
	if compression == "" {
		return in, head, nil
	}
	f := &inflated{compression: compression, decoder: envelope.Decompressor{MaxWindow: maxZstdWindow}, raw: in, limit: maxInflated}
	if err := f.restart(); err != nil {
		return nil, nil, err
	}

	begin := make([]byte, HeadBytes)
	n, err := io.ReadFull(f, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, err
	}
	begin = begin[:n]
	if s, ok := in.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return nil, nil, err
		}
		return f, begin, f.restart()
	}
	return io.MultiReader(bytes.NewReader(begin), onlyReader{f}), begin, nil
}

// An onlyReader hides that a reader could seek.
type onlyReader struct{ io.Reader }

func (f *inflated) restart() error {
	r, err := f.decoder.Open(f.compression, bufio.NewReaderSize(f.raw, 1<<16))
	if err != nil {
		return fmt.Errorf("%s: %w", f.compression, err)
	}
	f.r, f.at = r, 0
	return nil
}

func (f *inflated) Read(p []byte) (int, error) {
	if f.at >= f.limit {
		return 0, fmt.Errorf("%s: more than %d bytes, decompressed", f.compression, f.limit)
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.limit-f.at)])
	f.at += int64(n)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", f.compression, err)
	}
	return n, err
}

// Seek tells where it is, and goes back to the beginning, where the file can.
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
	return 0, errors.New("a compressed file goes back to its beginning only")
}
