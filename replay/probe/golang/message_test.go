package golang

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What each test looks for is refused in the words that it is known by, and all that is
// still asked about with it is passed over.
func TestFieldTests(t *testing.T) {
	const passedOver = -1
	kinds := []struct {
		kind  descriptorpb.FieldDescriptorProto_Type
		list  bool
		found int // the test that finds it
	}{
		{descriptorpb.FieldDescriptorProto_TYPE_STRING, false, testText},
		{descriptorpb.FieldDescriptorProto_TYPE_STRING, true, testText},
		{descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, false, testMessage},
		{descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, true, testMessage},
		{descriptorpb.FieldDescriptorProto_TYPE_INT32, true, testVarints},
		{descriptorpb.FieldDescriptorProto_TYPE_SINT64, true, testVarints},
		{descriptorpb.FieldDescriptorProto_TYPE_BOOL, true, testVarints},
		{descriptorpb.FieldDescriptorProto_TYPE_FIXED32, true, testFixed},
		{descriptorpb.FieldDescriptorProto_TYPE_FLOAT, true, testFixed},
		{descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, true, testFixed},
		{descriptorpb.FieldDescriptorProto_TYPE_BYTES, false, passedOver},
		{descriptorpb.FieldDescriptorProto_TYPE_BYTES, true, passedOver},
		{descriptorpb.FieldDescriptorProto_TYPE_INT64, false, passedOver},
		{descriptorpb.FieldDescriptorProto_TYPE_FIXED64, false, passedOver},
		{descriptorpb.FieldDescriptorProto_TYPE_FLOAT, false, passedOver},
	}
	for _, k := range kinds {
		md := messageWith(t, k.kind, k.list)
		for i, test := range fieldTests() {
			err := parse(md, test)
			switch {
			case k.found == i && err == nil:
				t.Errorf("%s, list %t: the %s test is not refused", k.kind, k.list, test.name)
			case k.found == i && (refusesText(err.Error()) != test.text || refusesWire(err.Error()) == test.text):
				t.Errorf("%s, list %t: the %s test is refused as: %v", k.kind, k.list, test.name, err)
			case k.found != i && err != nil:
				t.Errorf("%s, list %t: the %s test: %v", k.kind, k.list, test.name, err)
			}
			if k.found == i {
				break
			}
		}
	}
}

// Eight bytes are told from four.
func TestFixed64(t *testing.T) {
	for kind, refused := range map[descriptorpb.FieldDescriptorProto_Type]bool{
		descriptorpb.FieldDescriptorProto_TYPE_FIXED32: false, descriptorpb.FieldDescriptorProto_TYPE_FLOAT: false,
		descriptorpb.FieldDescriptorProto_TYPE_FIXED64: true, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE: true,
	} {
		if err := parse(messageWith(t, kind, true), fixed64Test()); refused != (err != nil) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// parse has protobuf-go read a message whose field 1 has the value of a test.
func parse(md protoreflect.MessageDescriptor, test fieldTest) error {
	data := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), test.value)
	return proto.Unmarshal(data, dynamicpb.NewMessage(md))
}

// messageWith is a message that has one field of a kind.
func messageWith(t *testing.T, kind descriptorpb.FieldDescriptorProto_Type, list bool) protoreflect.MessageDescriptor {
	t.Helper()
	field := &descriptorpb.FieldDescriptorProto{
		Name: proto.String("f"), Number: proto.Int32(1), Type: kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if list {
		field.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	if kind == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE {
		field.TypeName = proto.String(".Empty")
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test.proto"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{field}}, {Name: proto.String("Empty")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}
