package kind

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/decode/wire"
)

// descriptors is a real message of some 100 KB: a set of file descriptors.
func descriptors(t testing.TB) []byte {
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		return true
	})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) < 100<<10 {
		b = append(b, b...)
	}
	return b
}

// BenchmarkReader is parsing and the best reading of every node.
func BenchmarkReader(b *testing.B) {
	data := descriptors(b)
	tree := new(wire.Tree)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		tree.Reset(data, wire.Options{})
		r := NewReader(tree, nil)
		for i := range tree.Nodes {
			r.Best(int32(i))
		}
	}
	b.ReportMetric(float64(len(tree.Nodes))*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}

// BenchmarkEvidence is the evidence of one large message, again and again.
func BenchmarkEvidence(b *testing.B) {
	data := descriptors(b)
	ev := NewEvidence()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := ev.Add("R", data); err != nil {
			b.Fatal(err)
		}
	}
}
