// Package javalite finds definitions in Java classes that protoc generates for the lite runtime, as in Android apps. They
// contain no descriptors, but each message has a string with its fields' numbers, types and labels, and the names of
// the Java fields. Services are found by the annotations in the code that gRPC's generator writes.
//
//	var r javalite.Reader
//	r.Add("Item.class", classfile.Parse(data))
//	definitions := r.Definitions() // model.Definitions, whose Build returns descriptors
//
// What the classes do not have: the name of the .proto package, comments, options, default values, extensions, and reserved
// numbers. The package is that of the services in the same Java package, or else the name of the Java package. Names of fields and oneofs are those of the .proto
// file if the compiler kept the constants X_FIELD_NUMBER, and else the Java names in snake case. The names of classes
// that an obfuscator changed stay as they are.
//
// Source: RawMessageInfo and MessageSchema of the Java runtime, versions 3.8 to 4.
package javalite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
	"unwire/schema/classfile"
)

// Form is the name of the code generator, as in reports.
const Form = "protobuf-javalite"

// maxFields is the maximum number of fields, getters and enum values that are kept of all classes of an input.
const maxFields = 1_000_000

// A Reader extracts messages and enums from Java classes that belong together and use protobuf's lite runtime.
// The zero value is ready to use.
type Reader struct {
	// messages are the messages found so far, by class name.
	messages map[string]*message
	// enums are the enums found so far, by class name.
	enums map[string]*enum
	// services are the gRPC services found so far, by full protobuf name.
	services map[string]*service
	// maps are the types of map fields, by the class that holds the default entry.
	maps map[string]mapEntry
	// fields is the number of fields, getters and enum values kept so far.
	fields int
}

// A message is a Java class that represents a protobuf message.
type message struct {
	// class has what the Java class shows about the fields in addition to the description.
	class *shape
	// info is the decoded description of the message (RawMessageInfo).
	info *info
	// place is the path of the class file.
	place string
}

// An enum is a Java class that represents a protobuf enum.
type enum struct {
	// values are the values of the enum.
	values []model.EnumValue
	// place is the path of the class file.
	place string
}

// Add extracts what a class represents: a message, an enum, a map entry or a service. place is the path of its
// file.
func (r *Reader) Add(place string, f *classfile.File) {
	if f == nil || f.Name == "" || r.fields > maxFields {
		return
	}
	if values := enumValues(f); len(values) > 0 {
		r.fields += len(values)
		if r.enums == nil {
			r.enums = map[string]*enum{}
		}
		r.enums[f.Name] = &enum{values, place}
		return
	}
	if entry, ok := mapEntryOf(f); ok {
		if r.maps == nil {
			r.maps = map[string]mapEntry{}
		}
		r.maps[f.Name] = entry
		return
	}
	r.addService(place, f)
	if in := messageInfo(f); in != nil {
		shape := newShape(f)
		r.fields += len(in.fields) + len(shape.types) + len(shape.getters)
		if r.messages == nil {
			r.messages = map[string]*message{}
		}
		r.messages[f.Name] = &message{shape, in, place}
	}
}

// Empty reports whether no message was found.
func (r *Reader) Empty() bool { return len(r.messages) == 0 }

// Definitions returns everything that was found. Enums are included if a message refers to them, or if they are
// nested in one.
func (r *Reader) Definitions() *model.Definitions {
	d := &model.Definitions{}
	names := &namer{messages: r.messages, packages: r.packages(), enums: map[string]bool{}}
	for _, name := range sortedKeys(r.messages) {
		m := r.messages[name]
		def := &model.Message{Def: names.def(name, m.place)}
		if protoname.IsStandard(def.Full) {
			continue // protobuf has its own definitions
		}
		def.Syntax = m.info.syntax
		for i := range m.info.fields {
			f := r.field(m, &m.info.fields[i], names)
			if f == nil {
				d.Open = append(d.Open, model.Unresolved{Element: def.Full, Place: def.Place, Reason: "a field's description does not fit the class"})
				continue
			}
			def.Fields = append(def.Fields, f)
			if f.Ref != nil {
				d.Refs = append(d.Refs, f.Ref)
			}
		}
		d.Messages = append(d.Messages, def)
	}

	// Any enum in Java has constants; those of protobuf are referred to, or inside a message.
	for _, name := range sortedKeys(r.enums) {
		outer, _, _ := cutLast(name, "$")
		def := names.def(name, r.enums[name].place)
		if !names.enums[name] && r.messages[outer] == nil || protoname.IsStandard(def.Full) {
			continue
		}
		d.Enums = append(d.Enums, &model.Enum{Def: def, Values: r.enums[name].values})
	}
	r.addServices(d, names)
	return d
}

// A namer derives full protobuf names from Java class names, and collects the enums that are referred to.
type namer struct {
	// messages are the messages by class name.
	messages map[string]*message
	// packages maps Java packages, with slashes, to .proto packages.
	packages map[string]string
	// enums are the class names of the enums that fields refer to.
	enums map[string]bool
}

// def returns the common properties of a definition, derived from the name of its class.
func (n *namer) def(class, place string) model.Def {
	return model.Def{Full: n.full(class), Form: Form, Place: model.Place{File: place}, Whole: true}
}

// full returns the full protobuf name of the message or enum of a class: the package, the enclosing classes
// that are messages, and its own name.
func (n *namer) full(class string) string {
	pkg, name, found := cutLast(class, "/")
	if !found {
		pkg, name = "", class
	}
	parts := strings.Split(name, "$")
	prefix := strings.TrimSuffix(class, name)

	// The outer class of a .proto file is no message.
	for len(parts) > 1 && n.messages[prefix+parts[0]] == nil {
		prefix += parts[0] + "$"
		parts = parts[1:]
	}
	proto, ok := n.packages[pkg]
	if !ok {
		proto = strings.ReplaceAll(pkg, "/", ".")
	}
	return protoname.Join(proto, strings.Join(parts, "."))
}

// field converts the decoded description of a field to its definition. It returns nil if its type is unknown.
func (r *Reader) field(m *message, in *field, names *namer) *model.Field {
	f := &model.Field{Number: int64(in.number), Required: in.required, Place: model.Place{File: m.place}}
	f.Name = m.class.fieldName(in)
	if in.oneof >= 0 {
		f.Oneof = protoname.Snake(strings.TrimSuffix(m.info.oneofs[in.oneof], "_"))
	}
	t, list := in.scalar()
	f.Repeated = list != single
	if f.Repeated && model.Packable(t) {
		packed := list == packedList
		f.Packed = &packed
	}
	f.Presence = in.hasBit && m.info.syntax == "proto3" && t != typeMessage
	switch {
	case in.kind == kindMap:
		entry, ok := r.maps[in.class]
		if !ok {
			return nil
		}
		f.MapKey, f.Scalar = entry.key, entry.value
		f.Repeated, f.Packed = false, nil
		t = entry.value
		if entry.class != "" {
			f.Scalar, f.Ref = 0, names.ref(entry.class, t == typeEnum)
		} else if t == typeEnum || t == typeMessage {
			return nil
		}
	case t == typeMessage || t == typeGroup || t == typeEnum:
		class := in.class
		if class == "" || t == typeEnum {
			class = m.class.typeOf(in, t)
		}
		f.Group = t == typeGroup
		if class == "" && t == typeEnum {
			// An enum without a getter is a number.
			f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_INT32
			break
		}
		if class == "" {
			return nil
		}
		f.Ref = names.ref(class, t == typeEnum)
	default:
		f.Scalar = t
	}
	return f
}

// ref returns a reference to the message or enum that a Java class represents.
func (n *namer) ref(class string, isEnum bool) *model.Ref {
	if isEnum {
		n.enums[class] = true
	}
	return &model.Ref{Full: n.full(class), Enum: isEnum}
}

// cutLast splits s around the last occurrence of sep. found is false if there is none.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
