package align

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/schema/jsonname"
)

// A world is a random schema, with random messages of it. In a narrow one
// values are few, so that different fields often have the same.
type world struct {
	r      *rand.Rand
	narrow bool
	file   protoreflect.FileDescriptor
}

func wellKnownNames() []string {
	return []string{
		"Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue", "Any", "Empty", "DoubleValue", "FloatValue",
		"Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue",
	}
}

func newWorld(r *rand.Rand, narrow bool, messages int) *world {
	w := &world{r: r, narrow: narrow}
	// The types that imports name must be linked in.
	_ = []proto.Message{&timestamppb.Timestamp{}, &durationpb.Duration{}, &fieldmaskpb.FieldMask{}, &structpb.Struct{}, &anypb.Any{}, &emptypb.Empty{}, &wrapperspb.BoolValue{}}
	fd := &descriptorpb.FileDescriptorProto{
		Name: proto.String("w.proto"), Package: proto.String("w.v1"), Syntax: proto.String("proto3"),
		Dependency: []string{
			"google/protobuf/timestamp.proto", "google/protobuf/duration.proto", "google/protobuf/field_mask.proto", "google/protobuf/struct.proto",
			"google/protobuf/any.proto", "google/protobuf/empty.proto", "google/protobuf/wrappers.proto",
		},
	}
	for i := range 4 {
		e := &descriptorpb.EnumDescriptorProto{Name: proto.String(fmt.Sprintf("E%d", i))}
		number := int32(0)
		for j := range 2 + r.IntN(6) {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(fmt.Sprintf("E%d_V%d", i, j)), Number: proto.Int32(number)})
			number += int32(1 + r.IntN(3))
		}
		fd.EnumType = append(fd.EnumType, e)
	}
	for i := range messages {
		fd.MessageType = append(fd.MessageType, w.message(i, messages))
	}
	file, err := protodesc.NewFile(fd, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	w.file = file
	return w
}

func (w *world) message(i, of int) *descriptorpb.DescriptorProto {
	md := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprintf("M%d", i))}
	used, names := map[int32]bool{}, map[string]bool{}
	fields := 1 + w.r.IntN(14)
	oneof := w.r.IntN(3) == 0
	if oneof {
		md.OneofDecl = append(md.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("choice")})
	}
	var optional []*descriptorpb.FieldDescriptorProto
	for len(md.Field) < fields {
		n := int32(1 + w.r.IntN(20))
		if used[n] {
			continue
		}
		used[n] = true
		name := w.fieldName(names)
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(n), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		w.fieldType(f, i, of)
		if odd := oddNames(); w.r.IntN(8) == 0 && n <= int32(len(odd)) && !names[odd[n-1]] {
			f.JsonName, names[odd[n-1]] = proto.String(odd[n-1]), true
		}
		switch k := w.r.IntN(10); {
		case k < 2:
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			if w.r.IntN(3) == 0 && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_STRING && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_BYTES && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_MESSAGE {
				f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(false)}
			}
		case k == 2:
			w.mapOf(md, f)
		case k < 5 && oneof:
			f.OneofIndex = proto.Int32(0)
		case k < 7:
			f.Proto3Optional = proto.Bool(true)
			optional = append(optional, f)
		}
		md.Field = append(md.Field, f)
	}
	if oneof && !containsOneof(md) {
		md.OneofDecl = nil
	}
	slices.SortStableFunc(md.Field, func(a, b *descriptorpb.FieldDescriptorProto) int { // a oneof's stand together
		inOneof := func(f *descriptorpb.FieldDescriptorProto) int {
			if f.OneofIndex != nil {
				return 1
			}
			return 0
		}
		return inOneof(a) - inOneof(b)
	})
	for _, f := range optional { // synthetic ones come last
		f.OneofIndex = proto.Int32(int32(len(md.OneofDecl)))
		md.OneofDecl = append(md.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + f.GetName())})
	}
	return md
}

// oddNames are names in JSON that are not made from the names of fields.
func oddNames() []string {
	return []string{"@type", "größe", "with space", "a.b", "$ref", "user", "UserId", "0", "x-y", "\"quoted\"", "user_id", "Kind", "__proto__", "null", "id"}
}

func containsOneof(md *descriptorpb.DescriptorProto) bool {
	for _, f := range md.Field {
		if f.OneofIndex != nil && !f.GetProto3Optional() {
			return true
		}
	}
	return false
}

func (w *world) fieldName(used map[string]bool) string {
	words := []string{"user", "id", "name", "kind", "count", "value", "item", "path", "total", "flag", "state", "x2", "note"}
	for {
		var parts []string
		for range 1 + w.r.IntN(3) {
			parts = append(parts, words[w.r.IntN(len(words))])
		}
		name := strings.Join(parts, "_")
		if !used[name] && !used[jsonname.Of(name)] {
			used[name], used[jsonname.Of(name)] = true, true
			return name
		}
	}
}

func (w *world) fieldType(f *descriptorpb.FieldDescriptorProto, i, of int) {
	k := 1 + w.r.IntN(22)
	switch {
	case k == 10 || k == 11 || k > 18: // no groups in proto3
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		names := wellKnownNames()
		if w.r.IntN(2) == 0 {
			f.TypeName = proto.String(".google.protobuf." + names[w.r.IntN(len(names))])
		} else {
			f.TypeName = proto.String(fmt.Sprintf(".w.v1.M%d", w.r.IntN(of)))
		}
	case k == 14:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
		f.TypeName = proto.String(fmt.Sprintf(".w.v1.E%d", w.r.IntN(4)))
	default:
		f.Type = descriptorpb.FieldDescriptorProto_Type(k).Enum()
	}
}

func (w *world) mapOf(md *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) {
	keys := []descriptorpb.FieldDescriptorProto_Type{
		descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_UINT64,
		descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_SFIXED32, descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	}
	var camel strings.Builder
	for part := range strings.SplitSeq(f.GetName(), "_") {
		camel.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	entry := &descriptorpb.DescriptorProto{
		Name: proto.String(camel.String() + "Entry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			{Name: proto.String("key"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: keys[w.r.IntN(len(keys))].Enum()},
			{Name: proto.String("value"), Number: proto.Int32(2), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: f.Type, TypeName: f.TypeName},
		},
	}
	md.NestedType = append(md.NestedType, entry)
	f.Label, f.Type = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	f.TypeName = proto.String(".w.v1." + md.GetName() + "." + entry.GetName())
}

// fill makes a random message; a field is set with odds of density.
func (w *world) fill(md protoreflect.MessageDescriptor, density float64, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if w.r.Float64() > density {
			continue
		}
		switch {
		case fd.IsMap():
			for range 1 + w.r.IntN(3) {
				if v, ok := w.value(fd.MapValue(), density, depth); ok {
					m.Mutable(fd).Map().Set(w.scalar(fd.MapKey()).MapKey(), v)
				}
			}
		case fd.IsList():
			for range 1 + w.r.IntN(3) {
				if v, ok := w.value(fd, density, depth); ok {
					m.Mutable(fd).List().Append(v)
				}
			}
		default:
			if v, ok := w.value(fd, density, depth); ok {
				m.Set(fd, v)
			}
		}
	}
	return m
}

func (w *world) value(fd protoreflect.FieldDescriptor, density float64, depth int) (protoreflect.Value, bool) {
	md := fd.Message()
	if md == nil {
		return w.scalar(fd), true
	}
	if known := w.wellKnown(md); known != nil {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(known)
		m := dynamicpb.NewMessage(md)
		if err != nil || proto.Unmarshal(data, m) != nil {
			panic("a well-known type that is none")
		}
		return protoreflect.ValueOfMessage(m), true
	}
	if depth > 3 {
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfMessage(w.fill(md, density*0.9, depth+1)), true
}

func (w *world) wellKnown(md protoreflect.MessageDescriptor) proto.Message {
	switch md.Name() {
	case "Timestamp":
		return &timestamppb.Timestamp{Seconds: w.number(1 << 31), Nanos: int32(w.number(1e9))}
	case "Duration":
		return &durationpb.Duration{Seconds: w.number(1 << 20), Nanos: int32(w.number(1e9))}
	case "FieldMask":
		return &fieldmaskpb.FieldMask{Paths: []string{"user_id", "name"}[:w.r.IntN(3)]}
	case "Struct":
		return w.structure(0)
	case "Value":
		return w.dynamic(0)
	case "ListValue":
		return &structpb.ListValue{Values: []*structpb.Value{w.dynamic(1), w.dynamic(1)}[:w.r.IntN(3)]}
	case "Any":
		a, err := anypb.New(&wrapperspb.StringValue{Value: w.word()})
		if w.r.IntN(2) == 0 {
			a, err = anypb.New(&descriptorpb.FileDescriptorProto{Name: proto.String(w.word()), Package: proto.String(w.word())})
		}
		if err != nil {
			panic(err)
		}
		return a
	case "Empty":
		return &emptypb.Empty{}
	case "DoubleValue":
		return wrapperspb.Double(float64(w.number(1000)) / 8)
	case "FloatValue":
		return wrapperspb.Float(float32(w.number(1000)) / 8)
	case "Int64Value":
		return wrapperspb.Int64(w.number(1 << 40))
	case "UInt64Value":
		return wrapperspb.UInt64(uint64(w.number(1 << 40)))
	case "Int32Value":
		return wrapperspb.Int32(int32(w.number(1 << 30)))
	case "UInt32Value":
		return wrapperspb.UInt32(uint32(w.number(1 << 30)))
	case "BoolValue":
		return wrapperspb.Bool(w.r.IntN(2) == 0)
	case "StringValue":
		return wrapperspb.String(w.word())
	case "BytesValue":
		return wrapperspb.Bytes([]byte(w.word()))
	}
	return nil
}

func (w *world) structure(depth int) *structpb.Struct {
	out := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for range w.r.IntN(3) {
		out.Fields[w.word()] = w.dynamic(depth + 1)
	}
	return out
}

func (w *world) dynamic(depth int) *structpb.Value {
	switch k := w.r.IntN(6); {
	case k == 0:
		return structpb.NewNullValue()
	case k == 1:
		return structpb.NewNumberValue(float64(w.number(1000)))
	case k == 2:
		return structpb.NewBoolValue(w.r.IntN(2) == 0)
	case k == 3 && depth < 2:
		return structpb.NewStructValue(w.structure(depth + 1))
	case k == 4 && depth < 2:
		return structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{w.dynamic(depth + 1)}})
	}
	return structpb.NewStringValue(w.word())
}

// number is a random number below limit, in a narrow world below 4.
func (w *world) number(limit int64) int64 {
	if w.narrow {
		return w.r.Int64N(min(limit, 4))
	}
	return w.r.Int64N(limit)
}

func (w *world) word() string {
	if w.narrow {
		return []string{"", "0", "1", "true", "E0_V1", "user"}[w.r.IntN(6)]
	}
	b := make([]byte, 1+w.r.IntN(20))
	for i := range b {
		b[i] = "abcdefghijklmnop 0123456789-_/"[w.r.IntN(30)]
	}
	return string(b)
}

func (w *world) scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	sign := int64(1)
	if w.r.IntN(4) == 0 {
		sign = -1
	}
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(w.r.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(w.r.IntN(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(sign * w.number(math.MaxInt32)))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(w.number(math.MaxUint32)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(sign * w.number(math.MaxInt64))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(w.number(math.MaxInt64)) * uint64(1+w.r.IntN(2)))
	case protoreflect.FloatKind:
		if w.r.IntN(20) == 0 {
			return protoreflect.ValueOfFloat32([]float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32}[w.r.IntN(4)])
		}
		return protoreflect.ValueOfFloat32(float32(sign) * float32(w.number(1<<40)) / 7)
	case protoreflect.DoubleKind:
		if w.r.IntN(20) == 0 {
			return protoreflect.ValueOfFloat64([]float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64, 1e300}[w.r.IntN(5)])
		}
		return protoreflect.ValueOfFloat64(float64(sign) * float64(w.number(1<<40)) / 7)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(w.word()))
	}
	return protoreflect.ValueOfString(w.word())
}
