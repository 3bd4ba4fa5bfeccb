package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/probe"
)

type (
	fieldProto   = descriptorpb.FieldDescriptorProto
	messageProto = descriptorpb.DescriptorProto
)

// scalars are all kinds of fields but messages and enums.
var scalars = []descriptorpb.FieldDescriptorProto_Type{
	descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_SINT32, descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	descriptorpb.FieldDescriptorProto_TYPE_FIXED32, descriptorpb.FieldDescriptorProto_TYPE_SFIXED32, descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
	descriptorpb.FieldDescriptorProto_TYPE_FIXED64, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
}

// A schemaMaker makes messages of fields of every kind: nested, recursive,
// sparse, with high numbers.
type schemaMaker struct {
	r       *rand.Rand
	file    *descriptorpb.FileDescriptorProto
	service *descriptorpb.ServiceDescriptorProto
	depth   int
}

func newSchemaMaker(seed uint64) *schemaMaker {
	m := &schemaMaker{
		r:       rand.New(rand.NewPCG(seed, 7)),
		service: &descriptorpb.ServiceDescriptorProto{Name: proto.String("Service")},
	}
	m.file = &descriptorpb.FileDescriptorProto{
		Name: proto.String("probe.proto"), Package: proto.String("probe.v1"), Syntax: proto.String("proto3"),
		MessageType: []*messageProto{{Name: proto.String("Empty")}},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Color"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("COLOR_UNSPECIFIED"), Number: proto.Int32(0)}, {Name: proto.String("COLOR_RED"), Number: proto.Int32(1)},
		}}},
		Service: []*descriptorpb.ServiceDescriptorProto{m.service},
	}
	return m
}

// method adds a method whose request has so many fields.
func (m *schemaMaker) method(name string, fields int, last int32, stream bool) {
	in := m.message(name+"Request", fields, last)
	m.service.Method = append(m.service.Method, &descriptorpb.MethodDescriptorProto{
		Name: proto.String(name), InputType: proto.String(in), OutputType: proto.String(".probe.v1.Empty"), ServerStreaming: proto.Bool(stream),
	})
}

func (m *schemaMaker) message(name string, fields int, last int32) string {
	msg := &messageProto{Name: proto.String(name)}
	m.file.MessageType = append(m.file.MessageType, msg)
	m.depth++
	defer func() { m.depth-- }()
	full := ".probe.v1." + name
	used := map[int32]bool{}
	for i := range fields {
		n := int32(i + 1)
		if last > int32(fields) && m.r.IntN(3) == 0 {
			n = 1 + m.r.Int32N(last)
		}
		for used[n] || n >= 19000 && n < 20000 {
			n = 1 + m.r.Int32N(last)
		}
		used[n] = true
		m.field(msg, full, name, n, fields)
	}
	return full
}

func (m *schemaMaker) field(msg *messageProto, full, name string, n int32, fields int) {
	f := &fieldProto{
		Name: proto.String(fmt.Sprintf("%s_%d", words[m.r.IntN(len(words))], n)), Number: proto.Int32(n),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	jsonName := camel(f.GetName())
	f.JsonName = proto.String(strings.ToLower(jsonName[:1]) + jsonName[1:])
	msg.Field = append(msg.Field, f)
	if m.r.IntN(4) == 0 {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	set := func(t descriptorpb.FieldDescriptorProto_Type, of string) {
		f.Type = t.Enum()
		if of != "" {
			f.TypeName = proto.String(of)
		}
	}
	switch k := m.r.IntN(24); {
	case k < 15:
		set(scalars[k], "")
		if m.r.IntN(6) == 0 && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED && k != 7 && k != 8 {
			f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(false)}
		}
	case k == 15:
		set(descriptorpb.FieldDescriptorProto_TYPE_ENUM, ".probe.v1.Color")
	case k == 16:
		set(descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, full) // it has itself
	case k == 17:
		set(descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".probe.v1.Empty")
	case k <= 19: // a map
		entry := &messageProto{
			Name: proto.String(camel(f.GetName()) + "Entry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field: []*fieldProto{
				{Name: proto.String("key"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()},
				{Name: proto.String("value"), Number: proto.Int32(2), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: scalars[m.r.IntN(len(scalars))].Enum()},
			},
		}
		msg.NestedType = append(msg.NestedType, entry)
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		set(descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, full+"."+entry.GetName())
	default:
		of := ".probe.v1.Empty"
		if m.depth < 3 {
			of = m.message(fmt.Sprintf("%sSub%d", name, n), 1+m.r.IntN(max(fields/2, 2)), 40)
		}
		set(descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, of)
	}
}

var words = []string{"user", "path", "content", "model_id", "timeout", "cursor", "page_size", "options", "created_at", "kind"}

// camel is how protoc names the entry of a map.
func camel(s string) string {
	out, up := "", true
	for _, r := range s {
		switch {
		case r == '_':
			up = true
		case up && r >= 'a' && r <= 'z':
			out, up = out+string(r-32), false
		default:
			out, up = out+string(r), false
		}
	}
	return out
}

func (m *schemaMaker) set() *descriptorpb.FileDescriptorSet {
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{m.file}}
}

func (m *schemaMaker) files(t testing.TB) *protoregistry.Files {
	t.Helper()
	files, err := protodesc.NewFiles(m.set())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func methods(files *protoregistry.Files) []protoreflect.MethodDescriptor {
	var out []protoreflect.MethodDescriptor
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				out = append(out, s.Methods().Get(j))
			}
		}
		return true
	})
	slices.SortFunc(out, func(a, b protoreflect.MethodDescriptor) int { return a.Index() - b.Index() })
	return out
}

func classOf(f protoreflect.FieldDescriptor) probe.Class {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return probe.Len
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return probe.Message
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return probe.Fixed32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return probe.Fixed64
	}
	return probe.Varint
}

// An agreement counts how far a result agrees with the definitions.
type agreement struct{ fields, found, classed, wrong int }

// compare holds what was learnt of one message against its definition.
func compare(t *testing.T, res *probe.Result, path string, md protoreflect.MessageDescriptor) agreement {
	t.Helper()
	var v agreement
	seen := map[int32]probe.Field{}
	for _, f := range res.Fields {
		if f.Path == path && f.Number != 0 {
			seen[f.Number] = f
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		v.fields++
		f, ok := seen[int32(fd.Number())]
		if !ok {
			continue
		}
		v.found++
		delete(seen, f.Number)
		if f.Class == classOf(fd) {
			v.classed++
		} else if f.Class != "" {
			v.wrong++
			t.Errorf("%s %d is %s %s, said to be %s: %q", path, f.Number, fd.Cardinality(), fd.Kind(), f.Class, f.Evidence)
		}
		switch f.Kind {
		case "":
		case "group":
			if fd.Kind() != protoreflect.GroupKind {
				v.wrong++
				t.Errorf("%s %d is %s, said to be a group: %q", path, f.Number, fd.Kind(), f.Evidence)
			}
		case "string", "bytes":
			if fd.Kind().String() != f.Kind {
				v.wrong++
				t.Errorf("%s %d is %s, said to be %s: %q", path, f.Number, fd.Kind(), f.Kind, f.Evidence)
			}
		}
		switch {
		case f.Label == "map" && !fd.IsMap(), f.Label == "singular" && fd.IsList(), f.Label == "repeated" && !fd.IsList():
			v.wrong++
			t.Errorf("%s %d is %s, said to be %s: %q", path, f.Number, fd.Cardinality(), f.Label, f.Evidence)
		}
		if f.Name != "" && f.Name != string(fd.Name()) && f.Name != fd.JSONName() {
			v.wrong++
			t.Errorf("%s %d is %s, said to be %s: %q", path, f.Number, fd.Name(), f.Name, f.Evidence)
		}
	}
	for n, f := range seen {
		v.wrong++
		t.Errorf("%s %d does not exist, said to be %+v", path, n, f)
	}
	return v
}
