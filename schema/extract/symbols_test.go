package extract

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// Names are written as people write them, and in full with a dot where a shorter
// name would stand for something else: a package, a field, a method, an enum's
// value or another type. protoc takes each for what it is.
func TestReferences(t *testing.T) {
	text := func(typ, name string, no int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &no, TypeName: &typ, Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), JsonName: proto.String(jsonname.Of(name)),
		}
	}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	outer := message("Outer", text(".a.b.Outer.Inner", "own", 1), text(".a.b.Outer", "self", 2), text(".a.b.Other", "Other", 3),
		text(".a.b.Hidden", "hidden", 4), text(".a.c.Far", "far", 5), text(".a.b.E", "value", 6), text(".a.b.Other.Deep", "deep", 7), text(".a.b.string", "text", 8), text(".a.b.optional", "maybe", 9))
	outer.NestedType = []*descriptorpb.DescriptorProto{message("Inner", text(".a.b.Hidden", "up", 1), text(".a.b.Outer.Inner", "inner", 2)), message("Hidden")}
	outer.EnumType = []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Kind"), Value: []*descriptorpb.EnumValueDescriptorProto{{Name: proto.String("E"), Number: proto.Int32(0)}}}}
	other := message("Other")
	other.NestedType = []*descriptorpb.DescriptorProto{message("Deep")}
	clash := message("Clash", text(".a.c.Far", "a", 1))
	service := &descriptorpb.ServiceDescriptorProto{Name: proto.String("S"), Method: []*descriptorpb.MethodDescriptorProto{
		{Name: proto.String("Other"), InputType: proto.String(".a.b.Other"), OutputType: proto.String(".a.b.E")},
	}}
	set, err := Merge(t.Context(), &Source{Files: []*descriptorpb.FileDescriptorProto{
		{
			Name: proto.String("b.proto"), Package: proto.String("a.b"), Syntax: proto.String("proto3"), Dependency: []string{"c.proto"},
			MessageType: []*descriptorpb.DescriptorProto{outer, other, clash, message("Hidden"), message("E"), message("string"), message("optional")}, Service: []*descriptorpb.ServiceDescriptorProto{service},
		},
		{Name: proto.String("c.proto"), Package: proto.String("a.c"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{message("Far")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, body := range set.Print() {
		all += body
	}
	for _, line := range []string{
		"Inner own = 1;", "Outer self = 2;", "a.b.Other Other = 3;", "a.b.Hidden hidden = 4;", "a.c.Far far = 5;", "a.b.E value = 6;", "a.b.Other.Deep deep = 7;", "a.b.string text = 8;", "a.b.optional maybe = 9;",
		"a.b.Hidden up = 1;", "Inner inner = 2;", ".a.c.Far a = 1;", "rpc Other(a.b.Other) returns (E);",
	} {
		if !strings.Contains(all, " "+line) {
			t.Errorf("no %q in\n%s", line, all)
		}
	}
	wantCompiles(t, set)
}
