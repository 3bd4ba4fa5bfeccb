package bundle

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

func (b *builder) field(owner, syntax string, f *field, in *descriptorpb.DescriptorProto) *descriptorpb.FieldDescriptorProto {
	fd := &descriptorpb.FieldDescriptorProto{
		Name:     proto.String(f.name),
		Number:   proto.Int32(int32(f.no)),
		JsonName: proto.String(jsonname.Of(f.name)),
		Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if f.json != "" {
		fd.JsonName = proto.String(f.json)
	}
	switch {
	case f.repeated:
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	case syntax == "proto2" && (f.required || f.implicit && f.ref == nil && f.oneof == ""):
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REQUIRED.Enum()
	}
	element := owner + "." + f.name
	b.setType(element, syntax, f, fd)
	if f.mapKey != 0 {
		b.mapEntry(owner, f, fd, in)
		return fd
	}
	if f.packed != nil && f.repeated && packable(fd.GetType()) && *f.packed != (syntax == "proto3") {
		fd.Options = &descriptorpb.FieldOptions{Packed: f.packed}
	}
	if f.jsType != 0 {
		if fd.Options == nil {
			fd.Options = &descriptorpb.FieldOptions{}
		}
		fd.Options.Jstype = f.jsType.Enum()
	}
	if f.deprecated {
		if fd.Options == nil {
			fd.Options = &descriptorpb.FieldOptions{}
		}
		fd.Options.Deprecated = proto.Bool(true)
	}
	if f.value != nil && syntax == "proto2" && !f.repeated {
		fd.DefaultValue = f.value
	}
	if f.valueRef != "" && syntax == "proto2" && fd.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM {
		b.enumDefault(element, f, fd)
	}
	return fd
}

// setType sets the type of a field or of a map's value.
func (b *builder) setType(element, syntax string, f *field, fd *descriptorpb.FieldDescriptorProto) {
	if f.ref == nil {
		fd.Type = f.scalar.Enum()
		return
	}
	name := b.resolve(f.ref)
	isEnum := f.ref.enum
	if e := b.enums[name]; e != nil {
		isEnum = true
	} else if b.messages[name] != nil {
		isEnum = false
	}
	switch {
	case name == "" && isEnum:
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
		b.missing(element, f, "enum", "int32")
		return
	case name == "":
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		b.missing(element, f, "message", "bytes")
		return
	case isEnum:
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
	case f.group && syntax == "proto2":
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_GROUP.Enum()
	default:
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	}
	fd.TypeName = proto.String("." + name)
}

// missing says that a field's type is not there.
func (b *builder) missing(element string, f *field, kind, instead string) {
	word := f.ref.local
	if f.ref.full != "" {
		word = f.ref.full
	}
	if !strings.ContainsAny(word, "\n*/") && word != "" {
		b.notes[element] = fmt.Sprintf("Its type, the %s %s, was not found; %s has the same wire format.", kind, word, instead)
	} else {
		b.notes[element] = fmt.Sprintf("Its type, %s, was not found; %s has the same wire format.", kind, instead)
	}
	b.unresolved(element, f.ref.place, fmt.Sprintf("its type, the %s %s, was not found; it is declared as %s", kind, word, instead))
}

func packable(t descriptorpb.FieldDescriptorProto_Type) bool {
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
		descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, descriptorpb.FieldDescriptorProto_TYPE_GROUP:
		return false
	}
	return true
}

func (b *builder) mapEntry(owner string, f *field, fd *descriptorpb.FieldDescriptorProto, in *descriptorpb.DescriptorProto) {
	name := entryName(f.name)
	value := &descriptorpb.FieldDescriptorProto{
		Name: proto.String("value"), JsonName: proto.String("value"), Number: proto.Int32(2),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: fd.Type, TypeName: fd.TypeName,
	}
	key := f.mapKey
	if !validKey(key) {
		b.unresolved(owner+"."+f.name, f.place, "its keys have a type that no map can have; they are declared as string")
		key = descriptorpb.FieldDescriptorProto_TYPE_STRING
	}
	in.NestedType = append(in.NestedType, &descriptorpb.DescriptorProto{
		Name: proto.String(name),
		Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("key"), JsonName: proto.String("key"), Number: proto.Int32(1),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: key.Enum(),
		}, value},
		Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	})
	fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	fd.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	fd.TypeName = proto.String("." + owner + "." + name)
}

func validKey(t descriptorpb.FieldDescriptorProto_Type) bool {
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
		descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return false
	}
	return packable(t) || t == descriptorpb.FieldDescriptorProto_TYPE_STRING
}

// entryName is the name of a map field's entry type.
func entryName(field string) string {
	name := []byte(jsonname.Of(field))
	if len(name) > 0 && 'a' <= name[0] && name[0] <= 'z' {
		name[0] -= 'a' - 'A'
	}
	return string(name) + "Entry"
}
