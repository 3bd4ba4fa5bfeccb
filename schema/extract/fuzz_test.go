package extract

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// FuzzAdd reads any bytes as a file of each kind: nothing fails in there, and what
// is found joins.
func FuzzAdd(f *testing.F) {
	names := []string{"a.js", "a.json", "a.bin", "a.py", "a.class", "a.binpb", "a.tgz"}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("a.proto"), Package: proto.String("p"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("A"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("a"), Number: proto.Int32(1), TypeName: proto.String(".p.A"), OneofIndex: proto.Int32(7),
		}}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	for i := range names {
		for _, data := range []string{
			script, string(set), string(zipped(f, "a.js", script)), "\x7fELF\x00" + script + "\x00",
			`{"nested":{"p":{"nested":{"A":{"fields":{"a":{"type":"A","id":1}}}}}}}`,
			"DESCRIPTOR = b'\\n\\x07a.proto\\x12\\x01p\\\"\\x03\\n\\x01A'",
			"\xca\xfe\xba\xbe\x00\x00\x004\x00\x03\x01\x00\x04Code\x08\x00\x01.proto",
		} {
			f.Add(uint8(i), []byte(data))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		c := newCollector("x", formats())
		_ = c.addData(t.Context(), names[int(kind)%len(names)], data)
		for _, fault := range c.faults {
			t.Fatal(fault)
		}
		s := found(t, c)
		if _, err := Merge(t.Context(), s); err != nil {
			t.Logf("%v", err) // descriptors may be anything
		}
	})
}
