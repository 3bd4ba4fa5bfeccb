package javalite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
	"unwire/schema/classfile"
)

// A shape has what the Java class of a message shows about its fields, in addition to the description.
type shape struct {
	// constants are the names of the fields by number, from constants such as ITEM_ID_FIELD_NUMBER (ITEM_ID for
	// the field item_id).
	constants map[int32]string
	// types are the classes of Java fields, by name.
	types map[string]string
	// getters are the classes that getter methods return, by name. The methods have no parameter or an index.
	getters map[string]string
}

// newShape collects what the Java class of a message shows about its fields: constants, types and getters.
func newShape(f *classfile.File) *shape {
	s := &shape{constants: map[int32]string{}, types: map[string]string{}, getters: map[string]string{}}
	for i := range f.Fields {
		m := &f.Fields[i]
		if name, ok := strings.CutSuffix(m.Name, "_FIELD_NUMBER"); ok {
			if n, ok := f.Int(m.Constant); ok {
				s.constants[n] = name
			}
		}
		s.types[m.Name] = className(m.Descriptor)
	}
	for i := range f.Methods {
		m := &f.Methods[i]
		for _, parameters := range []string{"()", "(I)"} {
			if result, ok := strings.CutPrefix(m.Descriptor, parameters); ok && strings.HasPrefix(m.Name, "get") {
				if class := className(result); class != "" {
					s.getters[m.Name] = class
				}
			}
		}
	}
	return s
}

// className returns the class in the JVM's notation of a type: "com/acme/Item" for "Lcom/acme/Item;", "" for
// types that are not classes.
func className(descriptor string) string {
	name, ok := strings.CutPrefix(descriptor, "L")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, ";")
}

// fieldName returns the name of a field as in the .proto file, as far as the class shows it.
func (s *shape) fieldName(f *field) string {
	java := strings.TrimSuffix(f.java, "_")
	constant, ok := s.constants[f.number]
	if !ok {
		return cmp.Or(protoname.Snake(java), "field"+strconv.Itoa(int(f.number)))
	}
	// The constant has the name in capitals, so that it does not show those of itemId.
	name := strings.ToLower(constant)
	if java == "" || camel(name) == java || strings.EqualFold(camel(name), java) && strings.Contains(name, "_") {
		return name
	}
	if strings.EqualFold(name, java) {
		return java
	}
	return name
}

// camel converts the name of a protobuf field to that of the Java field.
func camel(name string) string {
	var b strings.Builder
	upper := false
	for _, c := range name {
		switch {
		case c == '_':
			upper = true
			continue
		case upper || b.Len() > 0 && endsInDigit(b.String()):
			b.WriteString(strings.ToUpper(string(c)))
		default:
			b.WriteRune(c)
		}
		upper = false
	}
	return b.String()
}

// endsInDigit reports whether the last character of s, which must not be empty, is a digit.
func endsInDigit(s string) bool { return s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

// typeOf returns the class of a message or enum field with the type t; "" if the message's class does not show
// it.
func (s *shape) typeOf(f *field, t descriptorpb.FieldDescriptorProto_Type) string {
	if t != typeEnum {
		return s.types[f.java]
	}
	// The Java field of an enum is a number; its getter returns the enum.
	name := camel(s.fieldName(f))
	if java := strings.TrimSuffix(f.java, "_"); java != "" {
		name = java
	}
	if name == "" {
		return ""
	}
	return s.getters["get"+strings.ToUpper(name[:1])+name[1:]]
}

// enumValues returns the values of a protobuf enum; nil if the class does not represent one. Generated code has
// their numbers as constants called X_VALUE.
func enumValues(f *classfile.File) (values []model.EnumValue) {
	if f.Super != "java/lang/Enum" {
		return nil
	}
	for i := range f.Fields {
		m := &f.Fields[i]
		name, ok := strings.CutSuffix(m.Name, "_VALUE")
		if !ok || !protoname.Valid(name) {
			continue
		}
		if n, ok := f.Int(m.Constant); ok {
			values = append(values, model.EnumValue{Name: name, Number: n})
		}
	}
	return values
}

// A mapEntry has the types of the keys and values of a map field.
type mapEntry struct {
	// key and value are the protobuf types of the map's keys and values.
	key, value descriptorpb.FieldDescriptorProto_Type
	// class is the Java class of a message or enum value; "" for other values.
	class string
}

// mapEntryOf returns the types of a map field if the class holds its default entry, which is created from two
// types of the runtime's list and default values. ok is false for other classes.
func mapEntryOf(f *classfile.File) (entry mapEntry, ok bool) {
	if !strings.HasSuffix(f.Name, "DefaultEntryHolder") {
		return mapEntry{}, false
	}
	i := slices.IndexFunc(f.Methods, func(m classfile.Member) bool { return m.Name == "<clinit>" })
	if i < 0 {
		return mapEntry{}, false
	}
	var list []descriptorpb.FieldDescriptorProto_Type
	for in := range f.Methods[i].Instructions() {
		if in.Op != classfile.OpGetstatic && in.Op != classfile.OpInvokestatic {
			continue
		}
		class, name, _ := f.Ref(in.Index)
		switch t, isType := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+name]; {
		case isType && strings.HasSuffix(class, "$FieldType"):
			list = append(list, descriptorpb.FieldDescriptorProto_Type(t))
		case len(list) == 2 && entry.class == "":
			entry.class = class
		}
	}
	if len(list) != 2 {
		return mapEntry{}, false
	}
	entry.key, entry.value = list[0], list[1]
	if entry.value != typeEnum && entry.value != typeMessage {
		entry.class = ""
	}
	return entry, true
}
