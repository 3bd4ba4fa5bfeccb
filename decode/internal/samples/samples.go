// Package samples creates files in well-known formats for tests of decoders.
package samples

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/asn1"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"google.golang.org/protobuf/encoding/protowire"
)

// Files returns one sample file for each format, by the format's name. It creates them with an
// independent library where possible. content is the data inside the compressed files.
func Files(t testing.TB, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	write := func(name string, do func(b *bytes.Buffer) error) {
		var b bytes.Buffer
		if err := do(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	writePictures(write)
	writeCompressed(write, content)
	// Formats without a library in this module are given as bytes.
	der, err := asn1.Marshal(struct {
		A, B int
		C    string
	}{1 << 40, 65537, "example"})
	if err != nil {
		t.Fatal(err)
	}
	files["der"] = der

	// A map of two entries in each of the serializations.
	files["cbor"] = []byte("\xa2\x64name\x65water\x64size\xf9\x3c\x00")
	files["msgpack"] = []byte("\x82\xa4name\xa5water\xa4size\xcd\x01\x00")
	files["bson"] = []byte("\x10\x00\x00\x00\x10a\x00\x05\x00\x00\x00\x08b\x00\x01\x00")
	files["wasm"] = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00")
	files["pdf"] = []byte("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n")
	files["sqlite"] = []byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20\x00\x00\x00\x01")
	return files
}

// writePictures writes a small image in each format.
func writePictures(write func(name string, do func(b *bytes.Buffer) error)) {
	picture := image.NewRGBA(image.Rect(0, 0, 5, 7))
	for i := range picture.Pix {
		picture.Pix[i] = byte(i * i)
	}
	write("png", func(b *bytes.Buffer) error { return png.Encode(b, picture) })
	write("jpeg", func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) })
	write("gif", func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) })
}

// writeCompressed compresses content with each compression.
func writeCompressed(write func(name string, do func(b *bytes.Buffer) error), content []byte) {
	write("gzip", func(b *bytes.Buffer) error {
		w := gzip.NewWriter(b)
		_, _ = w.Write(content)
		return w.Close()
	})

	write("zlib", func(b *bytes.Buffer) error {
		w := zlib.NewWriter(b)
		_, _ = w.Write(content)
		return w.Close()
	})

	write("xz", func(b *bytes.Buffer) error {
		w, err := xz.NewWriter(b)
		if err != nil {
			return err
		}
		_, _ = w.Write(content)
		return w.Close()
	})

	write("snappy", func(b *bytes.Buffer) error {
		// S2 extends Snappy, so ask for the original format.
		w := s2.NewWriter(b, s2.WriterSnappyCompat())
		_, _ = w.Write(content)
		return w.Close()
	})

	write("zstd", func(b *bytes.Buffer) error {
		w, err := zstd.NewWriter(b)
		if err != nil {
			return err
		}
		_, _ = w.Write(content)
		return w.Close()
	})
}

// Contents returns sample contents of various kinds (by the name of the kind) that a test can pass to Files.
func Contents() map[string][]byte {
	return map[string][]byte{
		"text":    []byte(strings.Repeat("what is compressed ", 9)),
		"nothing": nil,
		"message": protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "hello"),
		"numbers": {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3},
	}
}
