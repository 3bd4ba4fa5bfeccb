package standin

import (
	"io"

	"connectrpc.com/connect"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"unwire/decode/envelope"
)

// compressions are what the server can offer. Its own gzip is connect-go's.
var compressions = map[string]connect.HandlerOption{
	"gzip": nil,
	"br":   connect.WithCompression("br", newBrotliReader, newBrotliWriter),
	"zstd": connect.WithCompression("zstd", newZstdReader, newZstdWriter),
}

// options are the handler options of the script's compression.
func (c *scriptCompression) options() []connect.HandlerOption {
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

func newBrotliReader() connect.Decompressor { return newDecompressor("br") }

func newBrotliWriter() connect.Compressor { return brotli.NewWriter(nil) }

func newZstdReader() connect.Decompressor { return newDecompressor("zstd") }

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
	return &decompressor{encoding: encoding, decoder: envelope.Decompressor{MaxWindow: maxMessageBytes}}
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
