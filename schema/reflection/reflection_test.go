package reflection

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// FuzzFiles links what a server may report: two files of any kind.
func FuzzFiles(f *testing.F) {
	seed := func(file *descriptorpb.FileDescriptorProto) []byte {
		data, err := proto.Marshal(file)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	a := &descriptorpb.FileDescriptorProto{
		Name: proto.String("a.proto"), Package: proto.String("a"), Dependency: []string{"b.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("A"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("b"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(".b.B"),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}}},
	}
	b := &descriptorpb.FileDescriptorProto{Name: proto.String("b.proto"), Package: proto.String("b"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("B")}}}
	f.Add(seed(a), seed(b))
	f.Add(seed(a), seed(a))
	f.Add([]byte{}, []byte("\x0a\x01a\x22\x00"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var files Files
		for _, data := range [][]byte{first, second} {
			file := &descriptorpb.FileDescriptorProto{}
			if proto.Unmarshal(data, file) == nil {
				_ = files.Add(file)
			}
		}
		if len(files.Set()) > 2 {
			t.Errorf("%d files of two", len(files.Set()))
		}
		files.Missing()
		_, _ = files.Schema(ctx)
		if ctx.Err() != nil {
			t.Fatal("it takes more than 10 s")
		}
	})
}
