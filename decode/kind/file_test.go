package kind

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// written makes files with the libraries that write them; content is what is in those
// that compress.
func written(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	write := func(name string, do func(b *bytes.Buffer) error) {
		var b bytes.Buffer
		if err := do(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	picture := image.NewRGBA(image.Rect(0, 0, 5, 7))
	for i := range picture.Pix {
		picture.Pix[i] = byte(i * i)
	}
	write("png", func(b *bytes.Buffer) error { return png.Encode(b, picture) })
	write("jpeg", func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) })
	write("gif", func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) })
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
	der, err := asn1.Marshal(struct {
		A, B int
		C    string
	}{1 << 40, 65537, "example"})
	if err != nil {
		t.Fatal(err)
	}
	files["der"] = der
	files["cbor"] = []byte("\xa2\x64name\x65water\x64size\xf9\x3c\x00")
	files["msgpack"] = []byte("\x82\xa4name\xa5water\xa4size\xcd\x01\x00")
	files["bson"] = []byte("\x10\x00\x00\x00\x10a\x00\x05\x00\x00\x00\x08b\x00\x01\x00")
	files["wasm"] = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00")
	files["pdf"] = []byte("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n")
	files["sqlite"] = []byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20\x00\x00\x00\x01")
	return files
}

func TestFileFormat(t *testing.T) {
	contents := map[string][]byte{
		"text":    []byte(strings.Repeat("what is compressed ", 9)),
		"nothing": nil,
		"message": protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "hello"),
		"numbers": {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3},
	}
	for what, content := range contents {
		for want, p := range written(t, content) {
			if len(p) == 0 {
				continue // snappy writes nothing of nothing
			}
			if got := fileFormatOf(p); got != want {
				t.Errorf("%s of %s is %q: %x", want, what, got, p)
			}
			message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), p)
			tree := wire.Parse(message, wire.Options{})
			r := NewReader(tree, nil)
			is, _, prob := r.Best(tree.Nodes[0].First)
			if is != wire.KindBytes || prob < 0.9 {
				t.Errorf("%s of %s is read as %s %.2f: %x", want, what, is, prob, p)
			}
			if got := r.Remark(tree.Nodes[0].First, is, "bytes").Form; got != want {
				t.Errorf("%s of %s: the remark says %q", want, what, got)
			}
		}
	}
}

// TestFileFormatOfOthers: what is no file is hardly ever taken for one.
func TestFileFormatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	hits := map[string]int{}
	const n = 200_000
	for i := range n {
		var p []byte
		switch i % 4 {
		case 0: // any bytes
			for range 3 + r.IntN(40) {
				p = append(p, byte(r.Uint32()))
			}
		case 1: // fields
			for range 1 + r.IntN(4) {
				p = protowire.AppendVarint(protowire.AppendTag(p, protowire.Number(1+r.IntN(40)), protowire.VarintType), r.Uint64()>>r.IntN(64))
				p = protowire.AppendString(protowire.AppendTag(p, protowire.Number(1+r.IntN(40)), protowire.BytesType), fmt.Sprint(r.IntN(100000)))
			}
		case 2: // numbers
			for range 1 + r.IntN(10) {
				p = protowire.AppendVarint(p, r.Uint64()>>(40+r.IntN(24)))
			}
		case 3:
			for range 1 + r.IntN(10) {
				p = binary.LittleEndian.AppendUint32(p, uint32(r.IntN(1000)))
			}
		}
		if f := fileFormatOf(p); f != "" {
			hits[f]++
		}
	}
	sum := 0
	for _, c := range hits {
		sum += c
	}
	if sum > n/2000 {
		t.Errorf("%d of %d: %v", sum, n, hits)
	}
	for _, s := range []string{"0", "BM", "MZ", "PK", "x^2 + y^2", "ID3 tags", "0\x00", "RIFF", "hello, world", "{}", "7z", "BZh9 and more", "%PDF", "Obj", "PAR1"} {
		if f := fileFormatOf([]byte(s)); f != "" {
			t.Errorf("%q is %s", s, f)
		}
	}
}

func FuzzFileFormat(f *testing.F) {
	f.Add([]byte("\xa2\x64name\x65water\x64size\xf9\x3c\x00"))
	f.Add([]byte("\x82\xa4name\xa5water\xa4size\xcd\x01\x00"))
	f.Add([]byte("\xbf\x61a\x9f\xff\xff"))
	f.Add([]byte("\x30\x06\x02\x01\x01\x02\x01\x02"))
	f.Add([]byte("\xdf\xff\xff\xff\xff\xa1a\xc7\xff"))
	f.Add([]byte("MZ" + strings.Repeat("\xff", 70)))
	f.Fuzz(func(t *testing.T, p []byte) {
		before := bytes.Clone(p)
		name := fileFormatOf(p)
		if !bytes.Equal(p, before) {
			t.Error("the data changed")
		}
		if name != fileFormatOf(before) {
			t.Error("not the same twice")
		}
	})
}
