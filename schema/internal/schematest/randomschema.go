package schematest

import (
	"fmt"
	"math/rand/v2"

	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/gofeaturespb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"
)

// RandomFile returns a proto3 file with a few messages that refer to each other.
func RandomFile(r *rand.Rand) *descriptorpb.FileDescriptorProto {
	count := 3 + r.IntN(6)
	file := &descriptorpb.FileDescriptorProto{
		Name: new("random.proto"), Package: new("random"), Syntax: new("proto3"),
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: new("Mode"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: new("ZERO"), Number: new(int32(0))},
			{Name: new("ONE"), Number: new(int32(1))},
			{Name: new("TWO"), Number: new(int32(2))},
			{Name: new("THREE"), Number: new(int32(3))},
			{Name: new("FOUR"), Number: new(int32(4))},
		}}},
	}
	for i := range count {
		file.MessageType = append(file.MessageType, randomMessage(r, i, count))
	}
	return file
}

// randomMessage returns a random message definition: the one with the given index out of count, which may refer
// to each other.
func randomMessage(r *rand.Rand, index, count int) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: new(fmt.Sprintf("M%d", index))}
	number := int32(0)
	fields := 2 + r.IntN(9)
	oneofFrom, oneofLen := -1, 0
	if r.IntN(4) == 0 {
		oneofLen = 2 + r.IntN(4)
		oneofFrom = r.IntN(fields)
	}

	var optional []*descriptorpb.FieldDescriptorProto
	for i := range fields {
		number += int32(1 + r.IntN(4)*r.IntN(2)*r.IntN(2))
		if r.IntN(40) == 0 {
			number += int32(r.IntN(100))
		}
		f := &descriptorpb.FieldDescriptorProto{Name: new(fmt.Sprintf("f%d", number)), Number: new(number), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		randomType(r, f, index, count)
		m.Field = append(m.Field, f)
		switch {
		case oneofFrom >= 0 && i >= oneofFrom && i < oneofFrom+oneofLen && i < fields:
			if m.OneofDecl == nil {
				m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: new("which")}}
			}
			f.OneofIndex = new(int32(0))
		case r.IntN(100) < 22:
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		case r.IntN(100) < 12 && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
			optional = append(optional, f)
		case r.IntN(100) < 5:
			addMap(r, m, f, index, count)
		}
	}

	// Synthetic oneofs must come last.
	for _, f := range optional {
		f.Proto3Optional = new(true)
		f.OneofIndex = new(int32(len(m.OneofDecl)))
		m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: new("_" + f.GetName())})
	}
	return m
}

// randomType sets the type of f at random. The weights are the frequencies of types in public definitions.
// index and count are as in randomMessage.
func randomType(r *rand.Rand, f *descriptorpb.FieldDescriptorProto, index, count int) {
	types := []struct {
		weight int
		t      descriptorpb.FieldDescriptorProto_Type
	}{
		{380, descriptorpb.FieldDescriptorProto_TYPE_STRING},
		{260, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE},
		{90, descriptorpb.FieldDescriptorProto_TYPE_INT32},
		{60, descriptorpb.FieldDescriptorProto_TYPE_INT64},
		{80, descriptorpb.FieldDescriptorProto_TYPE_BOOL},
		{60, descriptorpb.FieldDescriptorProto_TYPE_ENUM},
		{20, descriptorpb.FieldDescriptorProto_TYPE_UINT32},
		{15, descriptorpb.FieldDescriptorProto_TYPE_UINT64},
		{5, descriptorpb.FieldDescriptorProto_TYPE_SINT32},
		{3, descriptorpb.FieldDescriptorProto_TYPE_SINT64},
		{30, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE},
		{20, descriptorpb.FieldDescriptorProto_TYPE_FLOAT},
		{8, descriptorpb.FieldDescriptorProto_TYPE_FIXED64},
		{5, descriptorpb.FieldDescriptorProto_TYPE_FIXED32},
		{35, descriptorpb.FieldDescriptorProto_TYPE_BYTES},
	}

	total := 0
	for _, t := range types {
		total += t.weight
	}
	pick := r.IntN(total)
	for _, t := range types {
		if pick -= t.weight; pick < 0 {
			f.Type = t.t.Enum()
			break
		}
	}
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		// Most references lead to a later message, some back, so that recursive types occur.
		to := index + 1 + r.IntN(3)
		if to >= count || r.IntN(12) == 0 {
			to = r.IntN(count)
		}
		f.TypeName = new(fmt.Sprintf(".random.M%d", to))
	case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
		f.TypeName = new(".random.Mode")
	}
}

// addMap makes the field f a map with string keys.
func addMap(r *rand.Rand, m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, index, count int) {
	name := fmt.Sprintf("F%dEntry", f.GetNumber())
	value := &descriptorpb.FieldDescriptorProto{Name: new("value"), Number: new(int32(2)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	randomType(r, value, index, count)
	m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{
		Name: &name, Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			{Name: new("key"), Number: new(int32(1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()},
			value,
		},
	})
	f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	f.TypeName = new(".random." + m.GetName() + "." + name)
	f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
}
