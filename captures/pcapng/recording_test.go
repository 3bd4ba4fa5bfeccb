package pcapng

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A recording can be read, kept with its secrets before the packets, and opened again.
func TestRecording(t *testing.T) {
	name := filepath.Join(t.TempDir(), "packets.pcapng")
	r, err := CreateRecording(name)
	if err != nil {
		t.Fatal(err)
	}
	packet := bytes.Repeat([]byte{0xa5}, 60)
	r.Packet(time.Unix(1, 0), packet, len(packet))
	if err := r.Finish(); err != nil || r.Size <= r.Begin {
		t.Fatalf("%d bytes, packets from %d, %v", r.Size, r.Begin, err)
	}
	in, err := r.Reader()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(in)
	if err != nil || int64(len(whole)) != r.Size || !bytes.Contains(whole[r.Begin:], packet) {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	var kept bytes.Buffer
	if err := r.WriteWithSecrets(&kept, strings.NewReader("CLIENT_RANDOM 00 00\n")); err != nil {
		t.Fatal(err)
	}
	if keys, packets := bytes.Index(kept.Bytes(), []byte("CLIENT_RANDOM")), bytes.Index(kept.Bytes(), packet); keys < 0 || packets < keys {
		t.Errorf("secrets at %d, the packet at %d", keys, packets)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	for begin, there := range map[int64]bool{r.Begin: true, r.Size: false} {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		again, err := OpenRecording(file, begin)
		if err != nil || (again != nil) != there {
			t.Errorf("from %d: %v, %v", begin, again, err)
		}
		if again != nil && again.Close() != nil {
			t.Error("not closed")
		}
	}
}
