package jsonname_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// TestOf holds the rule against that of the protobuf module.
func TestOf(t *testing.T) {
	for _, name := range []string{"a", "foo_bar", "_foo", "foo__bar_", "foo_1bar", "FooBar", "foo_Bar", "f_o_o", "x1_y2"} {
		file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name: proto.String("f.proto"), Syntax: proto.String("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String(name), Number: proto.Int32(1),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum(),
			}}}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := jsonname.Of(name), file.Messages().Get(0).Fields().Get(0).JSONName(); got != want {
			t.Errorf("%s is %q in JSON, want %q", name, got, want)
		}
	}
}
