package payload

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
)

func both(t *testing.T) (*Packer, *Unpacker) {
	t.Helper()
	k, err := NewPacker()
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewUnpacker()
	if err != nil {
		t.Fatal(err)
	}
	return k, u
}

// TestPack: what is packed comes back, and is compressed where that saves enough.
func TestPack(t *testing.T) {
	k, u := both(t)
	noise := make([]byte, 10_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for want, p := range map[int][]byte{Raw: noise, zstdCodec: bytes.Repeat([]byte("a"), 10_000)} {
		codec, data := k.Pack(p)
		got, err := u.Unpack(int64(codec), int64(len(p)), data)
		if codec != want || err != nil || !bytes.Equal(got, p) {
			t.Errorf("codec %d, want %d: %d bytes, %v", codec, want, len(got), err)
		}
	}
}

// TestRepeatedPayloadIsCached: one that follows itself is decompressed twice at most, since the first is not cached.
func TestRepeatedPayloadIsCached(t *testing.T) {
	k, u := both(t)
	_, data := k.Pack(make([]byte, 1<<20))
	for range 7 {
		got, err := u.Unpack(zstdCodec, 1<<20, data)
		if err != nil {
			t.Fatal(err)
		}
		got[0] = 1 // is the caller's
	}
	if u.inflated != 2 {
		t.Errorf("it was inflated %d times", u.inflated)
	}
}

// TestBomb: a payload that inflates to more than it declares, or than any may have.
func TestBomb(t *testing.T) {
	k, u := both(t)
	_, bomb := k.Pack(make([]byte, 2*MaxSize))
	for _, size := range []int64{2 * MaxSize, 1000, MaxSize, -1} {
		if p, err := u.Unpack(zstdCodec, size, bomb); !errors.Is(err, captures.ErrDamaged) {
			t.Errorf("a bomb that declares %d gives %d bytes, %v", size, len(p), err)
		}
	}
	for _, codec := range []int64{-1, 2} {
		if _, err := u.Unpack(codec, 4, []byte("data")); !errors.Is(err, captures.ErrDamaged) {
			t.Errorf("codec %d: %v", codec, err)
		}
	}
}

// BenchmarkPack compresses what does not compress, and text.
func BenchmarkPack(b *testing.B) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	text := bytes.Repeat([]byte("the answer, "), 64<<10/12)
	for i := range text {
		text[i] ^= noise[i] & 1
	}
	for name, p := range map[string][]byte{"random": noise, "text": text} {
		b.Run(name, func(b *testing.B) {
			k := require.Value(NewPacker())(b)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for range b.N {
				k.Pack(p)
			}
		})
	}
}

// TestIsUniform: random bytes are not tried to compress, what has fewer different ones is.
func TestIsUniform(t *testing.T) {
	noise := make([]byte, minSampledSize)
	r := rand.NewChaCha8([32]byte{})
	missed := 0
	for range 1000 {
		_, _ = r.Read(noise)
		if !isUniform(noise) {
			missed++
		}
	}
	if missed > 5 {
		t.Errorf("%d of 1000 random payloads are not found to be random", missed)
	}
	for name, alphabet := range map[string]int{"one byte": 1, "base64": 64, "seven bits": 128} {
		p := bytes.Clone(noise)
		for i := range p {
			p[i] = byte(int(p[i]) % alphabet)
		}
		if isUniform(p) {
			t.Error(name)
		}
	}
}
