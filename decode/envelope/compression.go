package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// ErrInflated is wrapped if decompression stopped because it reached its limit.
var ErrInflated = errors.New("the data decompresses to more bytes than the limit")

// defaultMaxInflated is the default of limits on decompressed bytes: 64 MiB.
const defaultMaxInflated = 64 << 20

// writers creates compressing writers by the name of the encoding in HTTP.
var writers = map[string]func(io.Writer) (io.WriteCloser, error){
	"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"br":      func(w io.Writer) (io.WriteCloser, error) { return brotli.NewWriter(w), nil },
	"zstd":    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) },
	"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
}

// normalEncoding returns the name of a content encoding in lower case and without aliases ("x-gzip" becomes
// "gzip"). It returns "" for identity, i.e. no compression.
func normalEncoding(name string) string {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	}
	return name
}

// Sniff detects gzip and zstd by their magic numbers. It returns "" for other data; br and deflate have no magic
// number.
func Sniff(p []byte) string {
	switch {
	case len(p) < 2:
	case p[0] == 0x1f && p[1] == 0x8b:
		return "gzip"
	case p[0] == 0x28 && bytes.HasPrefix(p, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	}
	return ""
}

// Decompress undoes a content encoding: gzip, br, zstd, deflate or identity. A list separated by commas is
// undone from its last entry to its first, as HTTP's content-encoding requires.
//
// Limits: the result has at most limit bytes; 0 means 64 MiB.
//
// Errors: the bytes before the error are returned with it. ErrInflated is wrapped if limit was reached; then at most the
// first 4 MiB are returned.
func Decompress(encoding string, p []byte, limit int64) ([]byte, error) {
	// Most payloads need no decoders.
	if encoding == "" {
		return p, nil
	}
	return new(decompressors).decompressAll(encoding, p, limit)
}

// decompressors decompresses payloads that are in memory, and reuses the decoders.
type decompressors struct {
	// Decompressor has the decoders of each compression, which are reused for the next payload.
	Decompressor

	// src reads the current compressed payload from memory. It is reused for the next payload.
	src bytes.Reader
}

// open returns a reader of p decompressed by the encoding name. It is valid until the next call.
func (r *decompressors) open(name string, p []byte) (io.Reader, error) {
	r.src.Reset(p)
	return r.Open(name, &r.src)
}

// decompressAll decompresses the single payload p to at most limit bytes, and releases the decoders afterwards; see
// decompress.
func (r *decompressors) decompressAll(encoding string, p []byte, limit int64) ([]byte, error) {
	defer r.Close()
	return r.decompress(encoding, p, limit)
}

// decompress undoes a list of encodings separated by commas. The result has at most limit bytes. The decoders
// remain allocated for the next payload.
func (r *decompressors) decompress(encoding string, p []byte, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = defaultMaxInflated
	}
	names := strings.Split(encoding, ",")

	// The last encoding in the list was applied last.
	for _, name := range slices.Backward(names) {
		name = normalEncoding(name)
		if name == "" {
			continue
		}
		out, err := r.inflate(name, p, limit)
		if err != nil {
			return out, err
		}
		p = out
	}
	return p, nil
}

// probeInflated is the number of bytes to which a payload is decompressed at first. Only for a larger one is the
// size measured before memory is allocated for the rest.
const probeInflated = 4 << 20

// frame decompresses one of the many frames of a body, as decompress does. If the frame exceeds limit, it keeps only the
// first 64 KiB.
func (r *decompressors) frame(encoding string, p []byte, limit int64) ([]byte, error) {
	data, err := r.decompress(encoding, p, limit)
	if errors.Is(err, ErrInflated) {
		data = bytes.Clone(data[:min(len(data), keptOfTooLarge)])
	}
	return data, err
}

// inflate undoes one compression of p, whose name is name. The result has at most limit bytes. A large payload is
// decompressed twice, first without keeping the bytes: so a decompression bomb never occupies memory, and memory that
// grows with the result would cost more time than the decompression.
func (r *decompressors) inflate(name string, p []byte, limit int64) ([]byte, error) {
	if !Known(name) {
		return nil, unknownError(name)
	}
	// 3 is a typical compression ratio of RPC messages.
	out, err := r.read(name, p, min(limit, probeInflated), int64(len(p))*3)
	if !errors.Is(err, ErrInflated) {
		return out, err
	}
	size := limit + 1
	if limit > probeInflated {
		size = r.measure(name, p, limit)
	}
	if size > limit {
		return out, pastLimit(name, len(p), limit)
	}
	return r.read(name, p, limit, size)
}

// measure returns the decompressed size of p, or limit + 1 if it has more than limit bytes. It ignores errors, because
// the decompression that follows reports them.
func (r *decompressors) measure(name string, p []byte, limit int64) int64 {
	in, err := r.open(name, p)
	if err != nil {
		return 0
	}
	n, _ := io.CopyN(io.Discard, in, limit+1)
	return n
}

// read decompresses p to at most limit bytes. It reserves memory for expected bytes.
func (r *decompressors) read(name string, p []byte, limit, expected int64) ([]byte, error) {
	in, err := r.open(name, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, endIsUnexpected(err))
	}
	var out bytes.Buffer
	out.Grow(int(min(expected, limit)) + bytes.MinRead)
	n, err := out.ReadFrom(io.LimitReader(in, limit+1))
	if n > limit {
		return out.Bytes()[:limit:limit], pastLimit(name, len(p), limit)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: decompression failed after %d bytes: %w", name, n, endIsUnexpected(err))
	}
	return out.Bytes(), nil
}

// pastLimit returns the error for a payload that exceeds the limit. It includes the ratio, because a high one
// suggests a decompression bomb.
func pastLimit(name string, compressed int, limit int64) error {
	return fmt.Errorf("%s with %d compressed bytes: %w of %d bytes (%d times as many)", name, compressed, ErrInflated, limit, limit/int64(max(compressed, 1)))
}

// NewWriter returns a writer that compresses with one of the encodings of Decompress except identity. The caller
// must close it.
func NewWriter(encoding string, w io.Writer) (io.WriteCloser, error) {
	name := normalEncoding(encoding)
	newWriter, known := writers[name]
	if !known {
		return nil, unknownError(name)
	}
	c, err := newWriter(w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// endIsUnexpected replaces io.EOF, which decoders return for truncated input, by io.ErrUnexpectedEOF.
func endIsUnexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Compress compresses p with an encoding that Decompress supports, such as "gzip".
func Compress(encoding string, p []byte) ([]byte, error) {
	name := normalEncoding(encoding)
	if name == "" {
		return p, nil
	}
	var out bytes.Buffer
	w, err := NewWriter(name, &out)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}
