package redact

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Why something is not searched, or not as a whole.
var (
	errInflatedTooLong = errors.New("inflates to more than is searched")
	errTrailing        = errors.New("bytes follow the compressed data")
)

// base64Text is what the text form of gRPC-Web counts as: it is decoded, searched
// and encoded anew as a compressed body is.
const base64Text = "base64"

// knownEncoding reports whether an inflater knows a content encoding.
func knownEncoding(name string) bool {
	switch name {
	case "gzip", "x-gzip", "deflate", "br", "zstd":
		return true
	}
	return false
}

// An inflater inflates bytes as they are pushed into it, while the codecs
// want to pull: the codec runs as a coroutine, which goes on when there is
// input and stops when it wants more.
type inflater struct {
	codecs   *codecs
	encoding string // found out from the first bytes if it was not given
	out      func(p []byte) (more bool)
	in       []byte
	closing  bool
	done     bool
	err      error
	next     func() (struct{}, bool)
	stop     func()
}

// newInflater returns an inflater that hands what it inflates to out, until
// that returns false.
func newInflater(c *codecs, encoding string, out func(p []byte) bool) *inflater {
	f := &inflater{codecs: c, encoding: strings.ToLower(encoding), out: out}
	f.next, f.stop = iter.Pull(f.run)
	return f
}

// feed inflates what p completes.
func (f *inflater) feed(p []byte) {
	if f.done {
		return
	}
	f.in = p
	if _, more := f.next(); !more {
		f.done = true
	}
	f.in = nil
}

// close ends the input and returns the error of the codec, nil if the data
// was whole.
func (f *inflater) close() error {
	f.closing = true
	if !f.done {
		f.next()
		f.done = true
	}
	f.stop()
	return f.err
}

// run is the coroutine; it yields when it has no input.
func (f *inflater) run(yield func(struct{}) bool) {
	src := reader(func(p []byte) (int, error) {
		for len(f.in) == 0 {
			if f.closing {
				return 0, io.EOF
			}
			if !yield(struct{}{}) {
				return 0, io.ErrClosedPipe
			}
		}
		n := copy(p, f.in)
		f.in = f.in[n:]
		return n, nil
	})
	f.err = f.inflate(src)
	for !f.closing && yield(struct{}{}) { // what follows the data is ignored
		f.in = nil
	}
}

func (f *inflater) inflate(src io.Reader) error {
	var start [4]byte
	n, err := io.ReadFull(src, start[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if f.encoding == "" || f.encoding == "identity" {
		f.encoding = sniff(start[:n])
	}
	if f.codecs.buf == nil {
		f.codecs.buf = make([]byte, 16<<10)
		f.codecs.in = bufio.NewReader(nil)
	}
	in := f.codecs.in
	in.Reset(io.MultiReader(bytes.NewReader(start[:n]), src))
	r, err := f.codecs.reader(f.encoding, in)
	if err != nil {
		return err
	}
	for {
		n, err := r.Read(f.codecs.buf)
		if n > 0 && !f.out(f.codecs.buf[:n]) {
			return errInflatedTooLong
		}
		switch {
		case errors.Is(err, io.EOF):
			if _, err := in.Peek(1); err == nil {
				return errTrailing
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// sniff tells a codec by its magic number.
func sniff(p []byte) string {
	switch {
	case bytes.HasPrefix(p, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(p, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	}
	return ""
}

// A reader is a function as an io.Reader.
type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// codecs keeps the decoders of a body for its next message: making one costs
// more than a small message does.
type codecs struct {
	gzip *gzip.Reader
	br   *brotli.Reader
	zstd *zstd.Decoder
	in   *bufio.Reader // a byte reader, so that no decoder reads past its data
	buf  []byte
}

// reader returns a decoder of src. The one before is not used any more.
func (c *codecs) reader(encoding string, src *bufio.Reader) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		if c.gzip == nil {
			c.gzip = new(gzip.Reader)
		}
		return c.gzip, c.gzip.Reset(src)
	case "deflate":
		// Some servers send a bare deflate stream.
		if head, _ := src.Peek(2); len(head) == 2 && (head[0]&0x0f != 8 || (uint(head[0])<<8|uint(head[1]))%31 != 0) {
			return flate.NewReader(src), nil
		}
		return zlib.NewReader(src)
	case base64Text:
		return &base64Reader{in: src}, nil
	case "br":
		if c.br == nil {
			c.br = new(brotli.Reader)
		}
		return c.br, c.br.Reset(src)
	case "zstd":
		if c.zstd != nil {
			return c.zstd, c.zstd.Reset(src)
		}
		// One goroutine, because the coroutine must be the one that reads.
		var err error
		c.zstd, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxInflated))
		return c.zstd, err
	}
	return nil, fmt.Errorf("unknown content encoding %q", encoding)
}

// deflate compresses p.
func deflate(encoding string, p []byte) ([]byte, error) {
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case base64Text:
		return []byte(base64.StdEncoding.EncodeToString(p)), nil
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		w = z
	default:
		return nil, fmt.Errorf("unknown content encoding %q", encoding)
	}
	if _, err := w.Write(p); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// A base64Reader decodes base64 that may be several padded runs, one after the
// other. The last one may lack its padding.
type base64Reader struct {
	in  *bufio.Reader
	err error
}

func (r *base64Reader) Read(p []byte) (n int, err error) {
	for r.err == nil && n+3 <= len(p) && (n == 0 || r.in.Buffered() >= 4) {
		var group []byte
		if group, r.err = r.group(); len(group) == 0 {
			break
		}
		k, err := base64.StdEncoding.Decode(p[n:], group)
		if n += k; err != nil {
			r.err = err
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// group returns the next four characters.
func (r *base64Reader) group() ([]byte, error) {
	group := make([]byte, 0, 4)
	for len(group) < 4 {
		c, err := r.in.ReadByte()
		switch {
		case err != nil && len(group) > 1:
			return append(group, "==="[:4-len(group)]...), err
		case err != nil && len(group) == 1:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case c != '\r' && c != '\n':
			group = append(group, c)
		}
	}
	return group, nil
}
