package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/replay/probe"
)

// A dialect is how a file of a random service is written.
type dialect int

const (
	proto3 dialect = iota
	proto2
	edition2023

	dialects = 3
)

// A randomService has requests of all that definitions can say: oneofs, maps
// of every key and value, groups, required fields, extension ranges,
// well-known types, types that have each other, numbers up to the last.
type randomService struct {
	r        *rand.Rand
	dialect  dialect
	file     *descriptorpb.FileDescriptorProto
	messages []*messageProto
}

const (
	typeInt32   = descriptorpb.FieldDescriptorProto_TYPE_INT32
	typeString  = descriptorpb.FieldDescriptorProto_TYPE_STRING
	typeBytes   = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	typeEnum    = descriptorpb.FieldDescriptorProto_TYPE_ENUM
	typeMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	typeGroup   = descriptorpb.FieldDescriptorProto_TYPE_GROUP
	optional    = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	required    = descriptorpb.FieldDescriptorProto_LABEL_REQUIRED
	repeated    = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
)

// wellKnown are the files and types that requests may have fields of.
func wellKnown() (files, types []string) {
	for _, m := range []proto.Message{
		&timestamppb.Timestamp{}, &durationpb.Duration{}, &fieldmaskpb.FieldMask{}, &structpb.Struct{}, &structpb.Value{}, &structpb.ListValue{}, &anypb.Any{},
		&emptypb.Empty{}, &wrapperspb.Int32Value{}, &wrapperspb.StringValue{}, &wrapperspb.BoolValue{}, &wrapperspb.DoubleValue{}, &wrapperspb.BytesValue{},
	} {
		d := m.ProtoReflect().Descriptor()
		if file := d.ParentFile().Path(); len(files) == 0 || files[len(files)-1] != file {
			files = append(files, file)
		}
		types = append(types, "."+string(d.FullName()))
	}
	return files, types
}

// newRandomService has one method a request of so many fields.
func newRandomService(seed uint64, sizes ...int) *randomService {
	s := &randomService{r: rand.New(rand.NewPCG(seed, 99)), dialect: dialect(seed % dialects)}
	files, _ := wellKnown()
	s.file = &descriptorpb.FileDescriptorProto{Name: proto.String("any.proto"), Package: proto.String("any.v1"), Dependency: files}
	switch s.dialect {
	case proto3:
		s.file.Syntax = proto.String("proto3")
	case proto2:
		s.file.Syntax = proto.String("proto2")
	case edition2023:
		s.file.Syntax, s.file.Edition = proto.String("editions"), descriptorpb.Edition_EDITION_2023.Enum()
	}
	for i := range 4 {
		e := &descriptorpb.EnumDescriptorProto{Name: proto.String(fmt.Sprintf("E%d", i))}
		for j := range 1 + s.r.IntN(40) {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(fmt.Sprintf("E%d_V%d", i, j)), Number: proto.Int32(int32(j * (1 + i)))})
		}
		s.file.EnumType = append(s.file.EnumType, e)
	}
	service := &descriptorpb.ServiceDescriptorProto{Name: proto.String("Service")}
	s.file.Service = append(s.file.Service, service)
	inner := 3 + s.r.IntN(6)
	for i := range inner + len(sizes) {
		s.messages = append(s.messages, &messageProto{Name: proto.String(fmt.Sprintf("M%d", i))})
	}
	for i, m := range s.messages {
		fields := s.r.IntN(12)
		if i >= inner {
			fields = sizes[i-inner]
			service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
				Name: proto.String(fmt.Sprintf("Call%d", i-inner)), InputType: proto.String(".any.v1." + m.GetName()), OutputType: proto.String(".google.protobuf.Empty"),
				ServerStreaming: proto.Bool((i-inner)%4 == 3),
			})
		}
		s.fill(m, fields, inner)
	}
	s.file.MessageType = s.messages
	return s
}

// numberFor draws a number: dense, sparse, or any at all.
func (s *randomService) numberFor(used map[int32]bool, fields int) int32 {
	for {
		n := 1 + s.r.Int32N(int32(fields*5/4+2))
		switch k := s.r.IntN(20); {
		case k < 3:
			n = 1 + s.r.Int32N(1000)
		case k == 3:
			n = 18_990 + s.r.Int32N(10)
		case k == 4:
			n = 536_870_911 - s.r.Int32N(20)
		case k == 5:
			n = 262_140 + s.r.Int32N(10)
		}
		if !used[n] {
			used[n] = true
			return n
		}
	}
}

// numbersAsked are all ranges that a random service has numbers in.
func numbersAsked() []probe.Range {
	return []probe.Range{{First: 1, Last: 1100}, {First: 18_985, Last: 19_010}, {First: 262_100, Last: 262_200}, {First: 536_870_800, Last: 536_870_911}}
}

func (s *randomService) fill(m *messageProto, fields, inner int) {
	used := map[int32]bool{}
	oneof := s.r.IntN(2) == 0
	inOneof := 0
	var plain, chosen []*fieldProto
	for i := range fields {
		n := s.numberFor(used, fields)
		f := &fieldProto{Name: proto.String(s.name(i, n)), Number: &n, Label: optional.Enum()}
		s.typeOf(m, f, inner)
		switch k := s.r.IntN(12); {
		case f.GetLabel() == repeated, f.GetType() == typeGroup:
		case k < 3:
			f.Label = repeated.Enum()
			if s.dialect != edition2023 && s.r.IntN(3) == 0 && packable(f.GetType()) {
				f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(s.dialect == proto2)}
			}
		case k < 5 && oneof:
			f.OneofIndex = proto.Int32(0)
			inOneof++
		case k == 5 && s.dialect == proto2:
			f.Label = required.Enum()
		case k == 6 && s.dialect == edition2023 && f.GetType() == typeMessage:
			f.Options = &descriptorpb.FieldOptions{Features: &descriptorpb.FeatureSet{MessageEncoding: descriptorpb.FeatureSet_DELIMITED.Enum()}}
		}
		if s.r.IntN(12) == 0 {
			f.JsonName = proto.String(fmt.Sprintf("custom-%d", n))
		}
		if f.OneofIndex != nil {
			chosen = append(chosen, f)
		} else {
			plain = append(plain, f)
		}
	}
	m.Field = append(plain, chosen...)
	if inOneof > 0 {
		m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: proto.String("choice")}}
	}
	if s.dialect != proto3 && s.r.IntN(3) == 0 {
		m.ExtensionRange = []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(2000), End: proto.Int32(3000)}}
	}
}

func (s *randomService) name(i int, n int32) string {
	name := fmt.Sprintf("%s_%d_%d", words[s.r.IntN(len(words))], i, n)
	if s.r.IntN(8) == 0 {
		name = camel(name)
	}
	return name
}

func packable(t descriptorpb.FieldDescriptorProto_Type) bool {
	return t != typeString && t != typeBytes && t != typeMessage && t != typeGroup
}

func (s *randomService) typeOf(m *messageProto, f *fieldProto, inner int) {
	set := func(t descriptorpb.FieldDescriptorProto_Type, of string) {
		f.Type = t.Enum()
		if of != "" {
			f.TypeName = &of
		}
	}
	message := func() string {
		if _, types := wellKnown(); s.r.IntN(3) == 0 {
			return types[s.r.IntN(len(types))]
		}
		if s.r.IntN(4) == 0 {
			return ".any.v1." + m.GetName() // it has itself
		}
		return ".any.v1." + s.messages[s.r.IntN(inner)].GetName()
	}
	enum := fmt.Sprintf(".any.v1.E%d", s.r.IntN(4))
	switch k := s.r.IntN(26); {
	case k < 15:
		set(scalars[k], "")
	case k < 17:
		set(typeEnum, enum)
	case k < 22:
		set(typeMessage, message())
	case k == 22 && s.dialect == proto2:
		g := &messageProto{Name: proto.String(fmt.Sprintf("Group%d", f.GetNumber()))}
		for i := range s.r.IntN(3) {
			g.Field = append(g.Field, &fieldProto{Name: proto.String(fmt.Sprintf("g%d", i)), Number: proto.Int32(int32(1 + i*3)), Label: optional.Enum(), Type: scalars[s.r.IntN(len(scalars))].Enum()})
		}
		f.Name = proto.String(strings.ToLower(g.GetName()))
		m.NestedType = append(m.NestedType, g)
		set(typeGroup, ".any.v1."+m.GetName()+"."+g.GetName())
	default:
		keys := []descriptorpb.FieldDescriptorProto_Type{typeString, typeInt32, descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64, descriptorpb.FieldDescriptorProto_TYPE_FIXED32}
		value := &fieldProto{Name: proto.String("value"), Number: proto.Int32(2), Label: optional.Enum()}
		switch s.r.IntN(4) {
		case 0:
			value.Type, value.TypeName = typeMessage.Enum(), proto.String(message())
		case 1:
			value.Type, value.TypeName = typeEnum.Enum(), &enum
		default:
			value.Type = scalars[s.r.IntN(len(scalars))].Enum()
		}
		entry := &messageProto{
			Name: proto.String(camel(f.GetName()) + "Entry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field: []*fieldProto{{Name: proto.String("key"), Number: proto.Int32(1), Label: optional.Enum(), Type: keys[s.r.IntN(len(keys))].Enum()}, value},
		}
		m.NestedType = append(m.NestedType, entry)
		f.Label = repeated.Enum()
		set(typeMessage, ".any.v1."+m.GetName()+"."+entry.GetName())
	}
}

func (s *randomService) set() *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	for _, path := range s.file.Dependency {
		f, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			panic(err)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	// Compilers write the names of JSON into what they hand to servers.
	f, err := protodesc.NewFile(s.file, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	return set
}

func (s *randomService) files(t testing.TB) *protoregistry.Files {
	t.Helper()
	files, err := protodesc.NewFiles(s.set())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// requestNames are the names of all fields of a request, among others, each in one of its forms.
func requestNames(md protoreflect.MessageDescriptor) []string {
	names := []string{"nobody", "has_this", "value", "key", "fields", "seconds", "path"}
	seen := map[protoreflect.FullName]bool{}
	var add func(md protoreflect.MessageDescriptor)
	add = func(md protoreflect.MessageDescriptor) {
		if seen[md.FullName()] {
			return
		}
		seen[md.FullName()] = true
		for i := range md.Fields().Len() {
			f := md.Fields().Get(i)
			names = append(names, f.TextName(), f.JSONName())
			if f.Message() != nil {
				add(f.Message())
			}
		}
	}
	add(md)
	return names
}
