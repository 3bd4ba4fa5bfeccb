package payload

import (
	"bytes"
	"testing"
)

// FuzzUnpack unpacks rows of any kind: what unpacks has the size that the row declares.
func FuzzUnpack(f *testing.F) {
	k, err := NewPacker()
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("abc"), 1000)} {
		codec, data := k.PackUnsampled(body)
		f.Add(int64(codec), int64(len(body)), bytes.Clone(data))
	}
	f.Add(int64(1), int64(MaxSize), []byte("\x28\xb5\x2f\xfd"))
	u, err := NewUnpacker()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, codec, size int64, data []byte) {
		if size > 1<<20 {
			size %= 1 << 20
		}
		body, err := u.Unpack(codec, size, data)
		if err == nil && int64(len(body)) != size {
			t.Errorf("codec %d, %d bytes: %d bytes of %d", codec, len(data), len(body), size)
		}
	})
}
