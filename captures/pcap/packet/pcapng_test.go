package packet

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// fileWithKeys makes a pcapng file of one frame and a secrets block.
func fileWithKeys(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pcapgo.NewNgWriter(&out, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 60)
	if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(data), Length: len(data)}, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	keys := []byte("CLIENT_RANDOM 00 11\n")
	for _, n := range []int{blockSecrets, 20 + len(keys), secretsTLS, len(keys)} {
		_ = binary.Write(&out, binary.LittleEndian, uint32(n))
	}
	out.Write(keys)
	_ = binary.Write(&out, binary.LittleEndian, uint32(20+len(keys)))
	return out.Bytes()
}

// FuzzNG reads any bytes as the blocks of a pcapng file.
func FuzzNG(f *testing.F) {
	f.Add(fileWithKeys(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := newReader(bytes.NewReader(file), func(log []byte) {
			if len(log) > len(file) {
				t.Error("secrets that are not in the file")
			}
		})
		if err != nil {
			return
		}
		for {
			p, err := r.nextFrame()
			if err != nil {
				if err != io.EOF && r.offset > int64(len(file)) {
					t.Errorf("offset %d of %d", r.offset, len(file))
				}
				return
			}
			if len(p.data) > len(file) {
				t.Errorf("a packet of %d bytes in a file of %d", len(p.data), len(file))
			}
		}
	})
}
