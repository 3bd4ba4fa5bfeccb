package value

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/internal/samples"
)

func TestFileFormat(t *testing.T) {
	for what, content := range samples.Contents() {
		for want, p := range samples.Files(t, content) {
			if len(p) == 0 {
				continue // snappy writes nothing of nothing
			}
			if got := FileFormat(p); got != want {
				t.Errorf("%s of %s is %q: %x", want, what, got, p)
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
		if f := FileFormat(p); f != "" {
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
		if f := FileFormat([]byte(s)); f != "" {
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
		name := FileFormat(p)
		if !bytes.Equal(p, before) {
			t.Error("the data changed")
		}
		if name != FileFormat(before) {
			t.Error("not the same twice")
		}
	})
}
