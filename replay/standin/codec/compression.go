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

// A Compression configures which compressions a server uses, and from which size.
type Compression struct {
	// Names are the offered encodings: gzip, br and zstd. The client's order of preference
	// decides. If empty, nothing is compressed.
	Names []string `json:"names"`
	// MinBytes is the size in bytes below which messages are not compressed.
	MinBytes int `json:"min_bytes"`
}

// Known reports whether a compression with the name is supported.
func Known(name string) bool {
	_, ok := compressions[name]
	return ok
}

// compressions are the encodings that the server can offer. gzip is built into
// connect-go.
var compressions = map[string]connect.HandlerOption{
	"gzip": nil,
	"br":   connect.WithCompression("br", newBrotliReader, newBrotliWriter),
	"zstd": connect.WithCompression("zstd", newZstdReader, newZstdWriter),
}

// Options are the handler options of the script's compression.
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

// A decompressor opens its decoder with the first input: connect resets a decompressor
// between uses, and one that was closed can never be reset.
type decompressor struct {
	encoding string
	decoder  envelope.Decompressor
	r        io.Reader
}

func newDecompressor(encoding string) *decompressor {
	return &decompressor{encoding: encoding, decoder: envelope.Decompressor{MaxWindow: maxWindow}}
}

func (d *decompressor) Reset(r io.Reader) (err error) {
	d.r, err = d.decoder.Open(d.encoding, r)
	return err
}

func (d *decompressor) Read(p []byte) (int, error) {
	if d.r == nil {
		return 0, io.EOF
	}
	return d.r.Read(p)
}

func (*decompressor) Close() error { return nil }
