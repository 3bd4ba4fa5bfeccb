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
// Errors: the bytes before the error are returned with it. ErrInflated is wrapped if limit was reached.
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

// probeInflated is the number of bytes to which a frame is decompressed at first. Only for a larger frame is the
// size measured before memory is allocated for the rest.
const probeInflated = 4 << 20

// frame is decompress for one of the many frames of a body. If a frame exceeds limit, only its first
// 64 KiB are kept, and memory use never exceeds limit.
func (r *decompressors) frame(encoding string, p []byte, limit int64) ([]byte, error) {
	data, err := r.decompress(encoding, p, min(limit, probeInflated))
	if !errors.Is(err, ErrInflated) {
		return data, err
	}
	// The frame is large. Decompress it without keeping the bytes first, so that a decompression bomb never
	// occupies memory.
	if limit > probeInflated {
		if err = r.measure(encoding, p, limit); err == nil {
			return r.decompress(encoding, p, limit)
		}
	}
	return bytes.Clone(data[:min(len(data), keptOfTooLarge)]), err
}

// measure decompresses p, discards the result, and returns ErrInflated if it has more than limit bytes. It ignores
// other errors, because the decompression that follows reports them.
func (r *decompressors) measure(encoding string, p []byte, limit int64) error {
	name := normalEncoding(encoding)
	if !Known(name) {
		// For a list of encodings, the decompression itself enforces the limit.
		return nil
	}
	in, err := r.open(name, p)
	if err != nil {
		return nil
	}
	if n, _ := io.CopyN(io.Discard, in, limit+1); n > limit {
		return pastLimit(name, len(p), limit)
	}
	return nil
}

// pastLimit returns the error for a payload that exceeds the limit. It includes the ratio, because a high one
// suggests a decompression bomb.
func pastLimit(name string, compressed int, limit int64) error {
	return fmt.Errorf("%s with %d compressed bytes: %w of %d bytes (%d times as many)", name, compressed, ErrInflated, limit, limit/int64(max(compressed, 1)))
}

// inflate undoes one compression of p, whose name is name. The result has at most limit bytes.
func (r *decompressors) inflate(name string, p []byte, limit int64) ([]byte, error) {
	if !Known(name) {
		return nil, unknownError(name)
	}
	in, err := r.open(name, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, endIsUnexpected(err))
	}
	return readLimited(name, in, len(p), limit)
}

// readLimited reads up to limit bytes of r. compressed is the size of the input, which helps to guess the size
// of the output.
func readLimited(name string, r io.Reader, compressed int, limit int64) ([]byte, error) {
	var out bytes.Buffer
	// 3 is a typical compression ratio of RPC messages.
	out.Grow(int(min(int64(compressed)*3+bytes.MinRead, limit+bytes.MinRead)))
	n, err := out.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return out.Bytes()[:limit:limit], pastLimit(name, compressed, limit)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: decompression failed after %d bytes: %w", name, n, endIsUnexpected(err))
	}
	return out.Bytes(), nil
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
