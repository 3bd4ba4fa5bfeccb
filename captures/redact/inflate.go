package redact

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"unwire/decode/envelope"
)

// Reasons why decompressed data was not searched completely.
var (
	errInflatedTooLong = errors.New("the data decompresses to more bytes than unwire searches for secrets")
	errTrailing        = errors.New("more bytes follow the compressed data")
)

// base64Text is treated as the content encoding of gRPC-Web's text form: it is decoded, searched and encoded
// again like a compressed body.
const base64Text = "base64"

// An inflater decompresses bytes that are passed to it piece by piece, although the decoders read from an
// io.Reader.
type inflater struct {
	// codecs keeps the decoder of the body for reuse.
	codecs *codecs

	// encoding is the content encoding; "" means that it is detected by the first bytes.
	encoding string

	// out is called with decompressed bytes; if it returns false, decompression ends.
	out func(p []byte) (more bool)

	// push runs the decoder in a goroutine, and passes the compressed bytes to it.
	push *envelope.Push
}

// newInflater returns an inflater that passes the decompressed data to out until out returns false.
func newInflater(c *codecs, encoding string, out func(p []byte) bool) *inflater {
	f := &inflater{codecs: c, encoding: strings.ToLower(encoding), out: out}
	f.push = envelope.NewPush(f.inflate)
	return f
}

// feed adds compressed bytes, and decompresses as much as possible.
func (f *inflater) feed(p []byte) { f.push.Feed(p) }

// failed returns the error that stopped the decoder before the input ended, or nil.
func (f *inflater) failed() error {
	_, err := f.push.Done()
	return err
}

// close ends the input and returns the error of the decoder; nil if the data was complete.
func (f *inflater) close() error { return f.push.Close() }

// inflate decompresses src until its end. It runs in a goroutine of its own, controlled by push.
func (f *inflater) inflate(src io.Reader) error {
	if f.codecs.buf == nil {
		f.codecs.buf = make([]byte, 16<<10)
		f.codecs.in = bufio.NewReader(nil)
	}
	in := f.codecs.in
	in.Reset(src)

	start, err := in.Peek(4)
	if len(start) == 0 {
		return err
	}
	if f.encoding == "" || f.encoding == "identity" {
		f.encoding = envelope.Sniff(start)
	}
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
			// Bytes after the end are not searched.
			if _, err := in.Peek(1); err == nil {
				return errTrailing
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// codecs keeps a body's decoder for its next message, because creating one costs more than decompressing a
// small message.
type codecs struct {
	// decoder decompresses one message after the other.
	decoder envelope.Decompressor

	// buf is a reused buffer for decompressed bytes.
	buf []byte

	// in is a reused buffer for compressed bytes. It implements io.ByteReader, so that no decoder reads beyond
	// the end of its data.
	in *bufio.Reader
}

// reader returns a decoder of src, which reuses the previous decoder; that one must not be used any more.
func (c *codecs) reader(encoding string, src *bufio.Reader) (io.Reader, error) {
	switch {
	case encoding == base64Text:
		return &base64Reader{in: src}, nil
	case !envelope.Known(encoding):
		return nil, fmt.Errorf("unknown content encoding %q", encoding)
	}
	return c.decoder.Open(encoding, src)
}

// newCompressor returns a writer that compresses to w with a content encoding, as codecs.reader decodes it.
func newCompressor(encoding string, w io.Writer) (io.WriteCloser, error) {
	if encoding == base64Text {
		return base64.NewEncoder(base64.StdEncoding, w), nil
	}
	return envelope.NewWriter(encoding, w)
}

// A base64Reader decodes base64 that consists of one or more padded parts. The last one may lack its padding.
type base64Reader struct {
	// in reads the base64 text.
	in *bufio.Reader
	// err is the error after which nothing more can be read, such as io.EOF; nil before.
	err error
}

// Read returns decoded bytes.
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

// group returns the next four base64 characters, without line ends between them.
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
