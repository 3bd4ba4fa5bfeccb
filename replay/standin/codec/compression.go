package codec

import (
	"io"

	"connectrpc.com/connect"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"unwire/decode/envelope"
)

// maxWindow limits the memory of a decompressor, in bytes.
const maxWindow = 16 << 20

// A Compression says which compressions a server offers, and from which message size it uses them.
type Compression struct {
	// Names are the offered compressions: gzip, br and zstd. The client's order of preference decides
	// which is used. If empty, nothing is compressed.
	Names []string `json:"names"`
	// MinBytes is the size in bytes below which messages are not compressed.
	MinBytes int `json:"min_bytes"`
}

// Known reports whether the compression with this name is supported.
func Known(name string) bool {
	_, ok := compressions[name]
	return ok
}

// compressions are the supported compressions, each with the option that adds it to a handler; nil for
// gzip, which connect-go has built in.
var compressions = map[string]connect.HandlerOption{
	"gzip": nil,
	"br":   connect.WithCompression("br", newBrotliReader, newBrotliWriter),
	"zstd": connect.WithCompression("zstd", newZstdReader, newZstdWriter),
}

// Options returns the connect-go handler options for these compressions.
func (c *Compression) Options() []connect.HandlerOption {
	list := []connect.HandlerOption{connect.WithCompressMinBytes(c.MinBytes)}
	gzip := false
	for _, name := range c.Names {
		if o := compressions[name]; o != nil {
			list = append(list, o)
		}
		gzip = gzip || name == "gzip"
	}
	if !gzip {
		list = append(list, connect.WithCompression("gzip", nil, nil))
	}
	return list
}

// newBrotliReader returns a Brotli decompressor.
func newBrotliReader() connect.Decompressor { return newDecompressor("br") }

// newBrotliWriter returns a Brotli compressor.
func newBrotliWriter() connect.Compressor { return brotli.NewWriter(nil) }

// newZstdReader returns a Zstandard decompressor.
func newZstdReader() connect.Decompressor { return newDecompressor("zstd") }

// newZstdWriter returns a Zstandard compressor.
func newZstdWriter() connect.Compressor {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("standin: zstd: " + err.Error()) // its options are constants
	}
	return w
}

// A decompressor implements connect.Decompressor. It opens its decoder when the first input is set,
// because connect-go resets a decompressor between uses, and a decoder that was closed cannot be reset.
type decompressor struct {
	// encoding is "br" or "zstd".
	encoding string

	// decoder decompresses; it is reused.
	decoder envelope.Decompressor

	// r is the decompressed stream; nil before Reset.
	r io.Reader
}

// newDecompressor returns a decompressor for an encoding, "br" or "zstd".
func newDecompressor(encoding string) *decompressor {
	return &decompressor{encoding: encoding, decoder: envelope.Decompressor{MaxWindow: maxWindow}}
}

// Reset makes the decompressor read from r.
func (d *decompressor) Reset(r io.Reader) (err error) {
	d.r, err = d.decoder.Open(d.encoding, r)
	return err
}

// Read reads decompressed bytes.
func (d *decompressor) Read(p []byte) (int, error) {
	if d.r == nil {
		return 0, io.EOF
	}
	return d.r.Read(p)
}

// Close does nothing; Reset may follow.
func (*decompressor) Close() error { return nil }
