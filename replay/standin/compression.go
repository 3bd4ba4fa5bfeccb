package standin

import (
	"io"

	"connectrpc.com/connect"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// compressions are what the server can offer. Its own gzip is connect-go's.
var compressions = map[string]connect.HandlerOption{
	"gzip": nil,
	"br":   connect.WithCompression("br", newBrotliReader, newBrotliWriter),
	"zstd": connect.WithCompression("zstd", newZstdReader, newZstdWriter),
}

// options are the handler options of the script's compression.
func (c *Compression) options() []connect.HandlerOption {
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

func newBrotliReader() connect.Decompressor { return &brotliReader{brotli.NewReader(nil)} }

func newBrotliWriter() connect.Compressor { return brotli.NewWriter(nil) }

type brotliReader struct{ *brotli.Reader }

func (*brotliReader) Close() error { return nil }

func newZstdReader() connect.Decompressor { return &zstdReader{} }

func newZstdWriter() connect.Compressor {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("standin: zstd: " + err.Error()) // its options are constants
	}
	return w
}

// A zstdReader makes its decoder with the first input: connect resets a
// decompressor between uses, and one that was closed can never be reset.
type zstdReader struct{ d *zstd.Decoder }

func (z *zstdReader) Reset(r io.Reader) (err error) {
	if z.d == nil {
		z.d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMessageBytes))
		return err
	}
	return z.d.Reset(r)
}

func (z *zstdReader) Read(p []byte) (int, error) {
	if z.d == nil {
		return 0, io.EOF
	}
	return z.d.Read(p)
}

func (*zstdReader) Close() error { return nil }
