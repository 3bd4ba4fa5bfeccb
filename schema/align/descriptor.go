package align

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// DefinitionsFile is the base name of the generated .proto file. Each protobuf package has one, in a folder of
// its own.
const DefinitionsFile = "align.proto"

// A definer converts matched field numbers and names to protobuf definitions.
type definer struct {
	// files maps each protobuf package to its generated file.
	files map[string]*descriptorpb.FileDescriptorProto

	// messages maps full names to message definitions.
	messages map[string]*descriptorpb.DescriptorProto

	// known maps the full names of well-known types to the paths of the files that define them.
	known map[string]string

	// needs are the paths of the well-known types' files that must be imported.
	needs map[string]bool
}

// DescriptorSet returns definitions of the protobuf fields whose JSON names were found, with one file for each package.
//
// Shape: fields with ambiguous names are left out. If several types fit all recorded values of a field, the field gets
// the one in Join.Type. An enum without a value 0 gets one whose name says that it was not seen. A field whose
// enum has names that another enum of the message uses is an int32.
func (r *Report) DescriptorSet() *descriptorpb.FileDescriptorSet {
	d := &definer{
		files: map[string]*descriptorpb.FileDescriptorProto{}, messages: map[string]*descriptorpb.DescriptorProto{},
		known: map[string]string{}, needs: map[string]bool{},
	}
	set := &descriptorpb.FileDescriptorSet{}

	wellKnown := wellKnownFiles()
	for _, fd := range wellKnown {
		for i := range fd.Messages().Len() {
			d.known[string(fd.Messages().Get(i).FullName())] = fd.Path()
		}
	}

	// Only the well-known files that are needed are included.
	for _, j := range r.Joins {
		d.addField(j)
	}

	for _, fd := range wellKnown {
		if d.needs[fd.Path()] {
			set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(d.files)) {
		set.File = append(set.File, d.files[pkg])
	}
	return set
}

// wellKnownFiles returns the files that define the well-known types (google.protobuf.Timestamp and others).
func wellKnownFiles() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		anypb.File_google_protobuf_any_proto, durationpb.File_google_protobuf_duration_proto, fieldmaskpb.File_google_protobuf_field_mask_proto,
		structpb.File_google_protobuf_struct_proto, timestamppb.File_google_protobuf_timestamp_proto, wrapperspb.File_google_protobuf_wrappers_proto,
	}
}

// message returns the definition of the message type called full, and the file that has it. Both are created if
// needed.
func (d *definer) message(full string) (*descriptorpb.FileDescriptorProto, *descriptorpb.DescriptorProto) {
	i := strings.LastIndexByte(full, '.')
	pkg, name := full[:max(i, 0)], full[i+1:]
	file := d.files[pkg]
	if file == nil {
		file = &descriptorpb.FileDescriptorProto{
			Name: proto.String(strings.ReplaceAll(pkg, ".", "/") + "/" + DefinitionsFile), Package: proto.String(pkg), Syntax: proto.String("proto3"),
		}
		d.files[pkg] = file
	}
	m := d.messages[full]
	if m == nil {
		m = &descriptorpb.DescriptorProto{Name: proto.String(name)}
		d.messages[full] = m
		file.MessageType = append(file.MessageType, m)
	}
	return file, m
}

// addField adds a declaration of the field described by j to its message.
func (d *definer) addField(j Join) {
	if !protoreflect.FullName(j.Message).IsValid() || !protoreflect.Name(j.Name).IsValid() || d.known[j.Message] != "" ||
		j.Number < 1 || j.Number > 1<<29-1 || j.Number >= 19000 && j.Number < 20000 {
		// JSON allows names that are not valid in protobuf.
		return
	}
	file, m := d.message(j.Message)
	if slices.ContainsFunc(m.Field, func(f *descriptorpb.FieldDescriptorProto) bool { return f.GetName() == j.Name }) {
		return
	}

	f := &descriptorpb.FieldDescriptorProto{
		Name: proto.String(j.Name), JsonName: proto.String(j.JSONName), Number: proto.Int32(int32(j.Number)),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}

	switch j.Label {
	case "repeated":
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		fallthrough
	case "singular":
		d.setType(file, m, f, j, j.Type)
	case "map":
		entry := d.entry(file, m, j)
		if entry == nil {
			return
		}
		f.Label, f.Type = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		f.TypeName = proto.String("." + j.Message + "." + entry.GetName())
		m.NestedType = append(m.NestedType, entry)
	}
	m.Field = append(m.Field, f)
}

// entry returns the entry message of a map field, with the name that protobuf requires. It returns nil if that
// name is used by another type.
func (d *definer) entry(file *descriptorpb.FileDescriptorProto, m *descriptorpb.DescriptorProto, j Join) *descriptorpb.DescriptorProto {
	keyType, valueType, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(j.Type, "map<"), ">"), ", ")
	var name strings.Builder
	for part := range strings.SplitSeq(j.Name, "_") {
		if part != "" {
			name.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	name.WriteString("Entry")
	if !ok || slices.ContainsFunc(m.NestedType, func(n *descriptorpb.DescriptorProto) bool { return n.GetName() == name.String() }) {
		return nil
	}

	field := func(name string, number int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String(name), JsonName: proto.String(name), Number: proto.Int32(number), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	key, value := field("key", 1), field("value", 2)
	d.setType(file, m, key, j, keyType)
	d.setType(file, m, value, j, valueType)
	return &descriptorpb.DescriptorProto{
		Name: proto.String(name.String()), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{key, value},
	}
}

// setType sets the type of a field, and adds the import that the type needs to the file.
func (d *definer) setType(file *descriptorpb.FileDescriptorProto, m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, j Join, typ string) {
	if typ == "enum" {
		if name, ok := enumOf(m, j); ok {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(), proto.String("."+j.Message+"."+name)
			return
		}
		typ = "int32"
	}

	// The name of a scalar type is that of its constant, in lower case.
	if t, ok := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(typ)]; ok && typ != "message" {
		f.Type = descriptorpb.FieldDescriptorProto_Type(t).Enum()
		return
	}

	f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+typ)

	// The type is well-known or another message of the joins.
	needed := d.known[typ]
	if needed == "" {
		other, _ := d.message(typ)
		needed = other.GetName()
	} else {
		d.needs[needed] = true
	}
	if needed != file.GetName() && !slices.Contains(file.Dependency, needed) {
		file.Dependency = append(file.Dependency, needed)
	}
}

// enumOf adds the enum type of a field to a message and returns its name. ok is false if another enum of the
// message uses one of the value names.
func enumOf(m *descriptorpb.DescriptorProto, j Join) (name string, ok bool) {
	names := slices.SortedFunc(maps.Keys(j.Enum), func(a, b string) int {
		switch x, y := j.Enum[a], j.Enum[b]; {
		case x == y:
			return strings.Compare(a, b)
		// proto3 requires that the first value is 0.
		case x == 0 || y != 0 && x < y:
			return -1
		}
		return 1
	})

	e := &descriptorpb.EnumDescriptorProto{Name: proto.String(fmt.Sprintf("Field%dEnum", j.Number))}
	if len(names) == 0 {
		return "", false
	}
	if j.Enum[names[0]] != 0 {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(fmt.Sprintf("FIELD_%d_NOT_SEEN_0", j.Number)), Number: proto.Int32(0)})
	}
	for _, n := range names {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(n), Number: proto.Int32(j.Enum[n])})
	}

	// protobuf puts the values of an enum in the scope around it.
	taken := map[string]bool{}
	for _, o := range m.EnumType {
		for _, v := range o.Value {
			taken[v.GetName()] = true
		}
	}
	for _, v := range e.Value {
		if taken[v.GetName()] {
			return "", false
		}
	}
	m.EnumType = append(m.EnumType, e)
	return e.GetName(), true
}
