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

// ErrInflated is wrapped where decompression stopped at its limit.
var ErrInflated = errors.New("inflates past the limit")

const defaultMaxInflated = 64 << 20

// writers compress, by the wire's name of an encoding.
var writers = map[string]func(io.Writer) (io.WriteCloser, error){
	"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"br":      func(w io.Writer) (io.WriteCloser, error) { return brotli.NewWriter(w), nil },
	"zstd":    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) },
	"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
}

// normalEncoding is the name under which encodings has an encoding; "" means
// that nothing is to be done.
func normalEncoding(name string) string {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	}
	return name
}

// Sniff tells a compression by its magic number: "gzip" or "zstd", or "" if it
// has none.
func Sniff(p []byte) string {
	switch {
	case bytes.HasPrefix(p, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(p, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	}
	return ""
}

// Decompress undoes a content encoding: gzip, br, zstd, deflate, identity, or
// several with commas between them, the last applied first undone.
//
// Limits: at most limit bytes come out (0 is 64 MiB), and little more is held.
// Errors: with the bytes up to the error. ErrInflated where limit was reached.
func Decompress(encoding string, p []byte, limit int64) ([]byte, error) {
	return new(decompressors).decompressAll(encoding, p, limit)
}

// decompressors are a Decompressor for payloads that are in memory.
type decompressors struct {
	Decompressor
	src bytes.Reader
}

// open returns a reader of what p is by an encoding, until the next is opened.
func (r *decompressors) open(name string, p []byte) (io.Reader, error) {
	r.src.Reset(p)
	return r.Open(name, &r.src)
}

func (r *decompressors) decompressAll(encoding string, p []byte, limit int64) ([]byte, error) {
	defer r.Close()
	return r.decompress(encoding, p, limit)
}

func (r *decompressors) decompress(encoding string, p []byte, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = defaultMaxInflated
	}
	names := strings.Split(encoding, ",")
	for _, name := range slices.Backward(names) {
		name = normalEncoding(name)
		if name == "" {
			continue
		}
		out, err := r.inflate(name, p, limit)
		if err != nil {
			return out, fmt.Errorf("envelope: %w", err)
		}
		p = out
	}
	return p, nil
}

// probeInflated is what of a frame is inflated before it is known whether the
// rest stays within the limit, too.
const probeInflated = 4 << 20

// frame is Decompress for one of a body's many frames: of one that inflates past the
// limit it keeps the beginning alone, and never holds more.
func (r *decompressors) frame(encoding string, p []byte, limit int64) ([]byte, error) {
	data, err := r.decompress(encoding, p, min(limit, probeInflated))
	if !errors.Is(err, ErrInflated) {
		return data, err
	}
	if limit > probeInflated {
		if err = r.measure(encoding, p, limit); err == nil {
			return r.decompress(encoding, p, limit)
		}
	}
	return bytes.Clone(data[:min(len(data), keptOfTooLarge)]), err
}

// measure inflates p and keeps nothing of it. Its error is ErrInflated or nil:
// what else may be wrong is found when it is inflated to be kept.
func (r *decompressors) measure(encoding string, p []byte, limit int64) error {
	name := normalEncoding(encoding)
	if !Known(name) {
		return nil // several encodings
	}
	in, err := r.open(name, p)
	if err != nil {
		return nil
	}
	if n, _ := io.CopyN(io.Discard, in, limit+1); n > limit {
		return fmt.Errorf("envelope: %w", pastLimit(name, len(p), limit))
	}
	return nil
}

func pastLimit(name string, compressed int, limit int64) error {
	return fmt.Errorf("%s: %d bytes: %w of %d, %d times their size", name, compressed, ErrInflated, limit, limit/int64(max(compressed, 1)))
}

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

func readLimited(name string, r io.Reader, compressed int, limit int64) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(int(min(int64(compressed)*3+bytes.MinRead, limit+bytes.MinRead)))
	n, err := out.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return out.Bytes()[:limit:limit], pastLimit(name, compressed, limit)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: after %d bytes: %w", name, n, endIsUnexpected(err))
	}
	return out.Bytes(), nil
}

// NewWriter returns a writer that applies one content encoding that Decompress knows, other
// than identity, and has to be closed.
func NewWriter(encoding string, w io.Writer) (io.WriteCloser, error) {
	name := normalEncoding(encoding)
	newWriter, known := writers[name]
	if !known {
		return nil, fmt.Errorf("envelope: %w", unknownError(name))
	}
	c, err := newWriter(w)
	if err != nil {
		return nil, fmt.Errorf("envelope: %s: %w", name, err)
	}
	return c, nil
}

func endIsUnexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Compress applies one content encoding that Decompress knows.
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
		return nil, fmt.Errorf("envelope: %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("envelope: %s: %w", name, err)
	}
	return out.Bytes(), nil
}
