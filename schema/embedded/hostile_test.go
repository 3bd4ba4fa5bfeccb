package embedded

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"
)

// Nothing is found where nothing is.
func TestNoFalsePositives(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 100<<20)
	_, _ = r.Read(data)
	// What a descriptor's beginning looks like, in text and in bytes.
	for i := 0; i+64 < len(data); i += 4096 {
		copy(data[i:], []string{"\n\tfile.proto", "\n\x0bfoo/a.proto\x12\x03foo", "\x1f\x8b\x08\x00", "LnByb3Rv", "\n\x09bar.proto\x22", "\n\x0bfoo/a.proto\x1a\x80"}[i/4096%6])
	}
	for _, f := range scanned(t, data) {
		t.Errorf("%v at %#x in random bytes", f.File, f.Offset)
	}
	for _, name := range []string{"/bin/ls", "/bin/sh", "/usr/bin/env"} {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, f := range scanned(t, data) {
			t.Errorf("%s: %v at %#x", name, f.File, f.Offset)
		}
	}
}

// A descriptor is found to its last byte wherever it stands. What comes after it
// begins with no tag: one would be read as a field more.
func TestAnywhere(t *testing.T) {
	files := corpus(t)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(files).Draw(t, "file")
		before := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "before")
		after := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "after")
		if len(after) > 0 {
			after[0] |= 6 // wire types 6 and 7 are none
		}
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		// 0 begins no field: others might continue the descriptor.
		data := append(append(append(before[:len(before):len(before)], raw...), 0), after...)
		list, err := Scan(context.Background(), data)
		if err != nil || len(list) != 1 || !proto.Equal(list[0].File, f) {
			t.Fatalf("%s: %v, %v", f.GetName(), list, err)
		}
	})
}

// What is broken off gives the declarations before the break.
func TestBrokenOff(t *testing.T) {
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("a.proto"), Package: proto.String("a")}
	for _, name := range []string{"A", "B", "C"} {
		f.MessageType = append(f.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(name)})
	}
	raw := marshal(t, f)
	list := scanned(t, raw[:len(raw)-1])
	if len(list) != 1 || len(list[0].File.MessageType) != 2 {
		t.Error(list)
	}
}

func FuzzScan(f *testing.F) {
	for _, file := range corpus(f)[:4] {
		f.Add(marshal(f, file))
	}
	f.Add([]byte("b'\\n\\x09a/b.proto\\x1a\\x00'"))
	f.Add(classFile(f, []string{"\n\x09a/b.proto\x1a\x01x"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := context.Background()
		for _, scan := range []func(context.Context, []byte) ([]Found, error){Scan, ScanClass, ScanSource} {
			list, err := scan(ctx, data)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				if x.Offset < 0 || x.Offset >= len(data) || x.Size <= 0 || x.File.GetName() == "" {
					t.Errorf("%+v", x)
				}
			}
		}
	})
}

func BenchmarkScan(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	one, err := os.ReadFile(self)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 0, 200<<20)
	for len(data)+len(one) < cap(data) {
		data = append(data, one...)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		scanned(b, data)
	}
}
