package probe

import (
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"
)

// What a captured message shows is read from any bytes.
func FuzzHints(f *testing.F) {
	f.Add([]byte{0x0A, 0x02, 0x10, 0x01})
	f.Fuzz(func(_ *testing.T, data []byte) {
		o := Options{Hints: map[int32]Hint{}}
		o.hint(data, []int32{1})
		o.hint(data, nil)
		o.knowName(data)
	})
}

// Wire types are read from any bytes, as deep as the definitions go.
func FuzzSeenIn(f *testing.F) {
	f.Add([]byte{0x0A, 0x04, 0x12, 0x02, 0x1A, 0x00, 0x10, 0x01})
	md := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, data []byte) {
		seen := map[string]Hint{}
		SeenIn(seen, data, md)
		if len(seen) > len(data) {
			t.Errorf("%d fields in %d bytes", len(seen), len(data))
		}
	})
}
