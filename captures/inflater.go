package captures

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

var errInflatedTooLong = errors.New("inflates to more than is searched")

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
	r, err := f.codecs.reader(f.encoding, io.MultiReader(bytes.NewReader(start[:n]), src))
	if err != nil {
		return err
	}
	if f.codecs.buf == nil {
		f.codecs.buf = make([]byte, 16<<10)
	}
	for {
		n, err := r.Read(f.codecs.buf)
		if n > 0 && !f.out(f.codecs.buf[:n]) {
			return errInflatedTooLong
		}
		switch {
		case errors.Is(err, io.EOF):
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
	buf  []byte
}

// reader returns a decoder of src. The one before is not used any more.
func (c *codecs) reader(encoding string, src io.Reader) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		if c.gzip == nil {
			c.gzip = new(gzip.Reader)
		}
		return c.gzip, c.gzip.Reset(src)
	case "deflate":
		return zlib.NewReader(src)
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
