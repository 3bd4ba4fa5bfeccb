package wire

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
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

// walk reads all tags of a message, and of payloads that begin like one, and
// keeps nothing: as fast as the format can be read.
func walk(b []byte) (fields int, ok bool) {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fields, false
		}
		b = b[n:]
		fields++
		switch typ {
		case protowire.VarintType:
			_, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			_, n = protowire.ConsumeFixed32(b)
		case protowire.Fixed64Type:
			_, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				inner, _ := walk(v)
				fields += inner
			}
		default:
			return fields, false
		}
		if n < 0 {
			return fields, false
		}
		b = b[n:]
	}
	return fields, true
}

// BenchmarkParse compares the tree with a bare walk over the tags that tries
// every payload as a message too; "x-walk" is how many times as long it takes.
func BenchmarkParse(b *testing.B) {
	data := descriptors(b)
	var bare time.Duration
	rounds := 0
	for start := time.Now(); bare < 200*time.Millisecond; bare = time.Since(start) {
		if n, ok := walk(data); n == 0 || !ok {
			b.Fatal("the walk failed")
		}
		rounds++
	}
	bare /= time.Duration(rounds)
	tree := new(Tree)
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	for b.Loop() {
		tree.Reset(data, Options{})
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(bare), "x-walk")
	b.ReportMetric(float64(len(tree.Nodes))*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}
