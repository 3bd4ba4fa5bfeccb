package model

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/protoname"
	"unwire/schema/jsonname"
)

// field builds the descriptor of a field. owner is the full name of its message. in is the descriptor to which
// the entry type of a map is added.
func (b *builder) field(owner, syntax string, f *Field, in *descriptorpb.DescriptorProto) *descriptorpb.FieldDescriptorProto {
	fd := &descriptorpb.FieldDescriptorProto{
		Name:     proto.String(f.Name),
		Number:   proto.Int32(int32(f.Number)),
		JsonName: proto.String(jsonname.Of(f.Name)),
		Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if f.JSONName != "" {
		fd.JsonName = proto.String(f.JSONName)
	}
	switch {
	case f.Repeated:
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()

	// Without explicit presence, proto2 has required fields only.
	case syntax == "proto2" && (f.Required || f.Implicit && f.Ref == nil && f.Oneof == ""):
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REQUIRED.Enum()
	}

	element := owner + "." + f.Name
	b.setType(element, syntax, f, fd)

	// A map is a repeated message with a key and a value, so the entry type is declared too.
	if f.MapKey != 0 {
		b.mapEntry(owner, f, fd, in)
		return fd
	}

	fd.Options = fieldOptions(f, fd.GetType(), syntax)

	// proto3 has no defaults, and repeated fields never have one.
	if f.Value != nil && syntax == "proto2" && !f.Repeated {
		fd.DefaultValue = f.Value
	}
	if f.ValueRef != "" && syntax == "proto2" && fd.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM {
		b.enumDefault(element, f, fd)
	}
	return fd
}

// fieldOptions returns the options of a field's descriptor, such as packed, or nil if it needs none.
func fieldOptions(f *Field, typ descriptorpb.FieldDescriptorProto_Type, syntax string) *descriptorpb.FieldOptions {
	o := &descriptorpb.FieldOptions{}
	// The option packed is written only if it differs from the syntax's default.
	if f.Packed != nil && f.Repeated && Packable(typ) && *f.Packed != (syntax == "proto3") {
		o.Packed = f.Packed
	}
	if f.JSType != 0 {
		o.Jstype = f.JSType.Enum()
	}
	if f.Deprecated {
		o.Deprecated = proto.Bool(true)
	}
	if proto.Size(o) == 0 {
		return nil
	}
	return o
}

// setType sets the type in the descriptor fd of a field; for a map, the type of its values. element is the
// field's full name.
func (b *builder) setType(element, syntax string, f *Field, fd *descriptorpb.FieldDescriptorProto) {
	if f.Ref == nil {
		fd.Type = f.Scalar.Enum()
		return
	}
	name := b.resolve(f.Ref)
	isEnum := f.Ref.Enum
	if e := b.enums[name]; e != nil {
		isEnum = true
	} else if b.messages[name] != nil {
		isEnum = false
	}
	switch {

	// Missing types are replaced by scalars with the same encoding.
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
	case f.Group && syntax == "proto2":
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_GROUP.Enum()
	default:
		fd.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	}
	fd.TypeName = proto.String("." + name)
}

// missing records that the type of a field was not found. kind is "enum" or "message", and instead the type
// used in its place.
func (b *builder) missing(element string, f *Field, kind, instead string) {
	word := f.Ref.Local
	if f.Ref.Full != "" {
		word = f.Ref.Full
	}
	if !strings.ContainsAny(word, "\n*/") && word != "" {
		b.notes[element] = fmt.Sprintf("Its type, the %s %s, was not found; %s has the same wire format.", kind, word, instead)
	} else {
		b.notes[element] = fmt.Sprintf("Its type, %s, was not found; %s has the same wire format.", kind, instead)
	}
	b.unresolved(element, f.Ref.Place, fmt.Sprintf("its type, the %s %s, was not found, so extract declared it as %s", kind, word, instead))
}

// Packable reports whether repeated fields of the type may be packed.
func Packable(t descriptorpb.FieldDescriptorProto_Type) bool {
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
		descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, descriptorpb.FieldDescriptorProto_TYPE_GROUP:
		return false
	}
	return true
}

// mapEntry turns the descriptor fd of a field into a map field, and adds the nested entry type to the message
// in.
func (b *builder) mapEntry(owner string, f *Field, fd *descriptorpb.FieldDescriptorProto, in *descriptorpb.DescriptorProto) {
	name := protoname.MapEntry(f.Name)
	value := &descriptorpb.FieldDescriptorProto{
		Name: proto.String("value"), JsonName: proto.String("value"), Number: proto.Int32(2),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: fd.Type, TypeName: fd.TypeName,
	}
	key := f.MapKey
	if !validKey(key) {
		b.unresolved(owner+"."+f.Name, f.Place, "invalid type for map keys; declared as string")
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

// validKey reports whether the type may be the key of a map.
func validKey(t descriptorpb.FieldDescriptorProto_Type) bool {
	switch t {
	case descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
		descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return false
	}
	return Packable(t) || t == descriptorpb.FieldDescriptorProto_TYPE_STRING
}
