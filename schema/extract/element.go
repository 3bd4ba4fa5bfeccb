package extract

import (
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// An element is a top-level declaration of a .proto file that is being merged: a message, enum, service or
// extension.
type element struct {
	// pkg is the protobuf package, and name the simple name of the declaration.
	pkg, name string
	// syntax is the syntax of the file that declares the element.
	syntax syntax

	// msg is the declaration: a DescriptorProto, EnumDescriptorProto, ServiceDescriptorProto or
	// FieldDescriptorProto.
	msg proto.Message
	// options are the file options of the file that declares the element.
	options *descriptorpb.FileOptions

	// before is a copy of the declaration from before it was renamed; nil if it was not renamed.
	before proto.Message

	// layer is the number of the output file, if a package needs several because packages refer to each other.
	// See assignLayers.
	layer int

	// guessed is set if the element was derived from the code of a script or class, not read from a descriptor.
	guessed bool
}

// full returns the full name of the declaration: package and simple name.
func (e *element) full() string { return join(e.pkg, e.name) }

// join appends a name to a package, with a dot between them. The package may be empty.
func join(pkg, name string) string {
	if pkg == "" {
		return name
	}
	return pkg + "." + name
}

// A syntax is the part of a file's settings that affects the meaning of its declarations.
type syntax struct {
	// name is "proto2", "proto3" or "editions".
	name string
	// edition is the edition, if name is "editions".
	edition descriptorpb.Edition
	// features are the serialized features in the file's options.
	features string
}

// subsumes reports whether e declares everything that other declares, so that other is not needed.
func (e *element) subsumes(other *element) bool {
	msg := e.msg
	if e.before != nil {
		msg = e.before
	}
	return sameShape(msg, other.msg) || e.covers(other)
}

// fieldsOf returns the number of fields of a message; 0 for other elements.
func fieldsOf(e *element) int {
	d, _ := e.msg.(*descriptorpb.DescriptorProto)
	return len(d.GetField())
}

// openEnum makes the proto2 enum e a proto3 enum if the same enum was also found as the proto3 enum other.
// Messages of both syntaxes can use a proto3 enum.
func (e *element) openEnum(other *element) {
	if _, ok := e.msg.(*descriptorpb.EnumDescriptorProto); ok && e.syntax.name == "proto2" && other.syntax.name == "proto3" {
		e.syntax, e.options = other.syntax, other.options
	}
}

// prefixOf returns a package followed by a dot, or "" for the empty package.
func prefixOf(pkg string) string {
	if pkg == "" {
		return ""
	}
	return pkg + "."
}

// elementsOf returns copies of all top-level declarations of a file.
func elementsOf(f *descriptorpb.FileDescriptorProto) []*element {
	f = proto.Clone(f).(*descriptorpb.FileDescriptorProto)
	syn := syntax{name: f.GetSyntax(), edition: f.GetEdition()}
	if syn.name == "" {
		syn.name = "proto2"
	}

	// Features change the meaning of declarations, so they are part of the syntax.
	if fs := f.GetOptions().GetFeatures(); fs != nil {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(fs)
		if err == nil {
			syn.features = string(data)
		}
	}

	opts := f.GetOptions()
	if opts != nil {
		opts.UninterpretedOption = nil
	}
	var list []*element

	// All elements of a file share its package, syntax and options.
	enter := func(name string, msg proto.Message) {
		list = append(list, &element{
			pkg: f.GetPackage(), name: name, syntax: syn, msg: msg, options: opts, guessed: isGuessed(f.GetName()),
		})
	}
	for _, d := range f.MessageType {
		complete(d)
		enter(d.GetName(), d)
	}
	for _, d := range f.EnumType {
		enter(d.GetName(), d)
	}
	for _, d := range f.Service {
		enter(d.GetName(), d)
	}
	for _, d := range f.Extension {
		completeField(d)
		enter(d.GetName(), d)
	}
	return list
}

// complete adds the properties to a message that a descriptor may omit but compilers fill in.
func complete(d *descriptorpb.DescriptorProto) {
	for _, f := range d.Field {
		completeField(f)
	}
	for _, f := range d.Extension {
		completeField(f)
	}
	for _, n := range d.NestedType {
		complete(n)
	}
}

// completeField adds the default JSON name of a field.
func completeField(f *descriptorpb.FieldDescriptorProto) {
	if f.JsonName == nil {
		f.JsonName = proto.String(jsonname.Of(f.GetName()))
	}
}

// sameShape reports whether two declarations are equal, apart from the order of fields, values and so on.
func sameShape(a, b proto.Message) bool {
	if a.ProtoReflect().Descriptor() != b.ProtoReflect().Descriptor() {
		return false
	}
	// Code generators and descriptors have the parts of messages in different orders.
	if x, ok := a.(*descriptorpb.DescriptorProto); ok {
		return proto.Equal(canonical(x), canonical(b.(*descriptorpb.DescriptorProto)))
	}
	return proto.Equal(a, b)
}

// canonical returns a copy of a message with its fields, nested types and so on in a defined order.
func canonical(d *descriptorpb.DescriptorProto) *descriptorpb.DescriptorProto {
	d = proto.Clone(d).(*descriptorpb.DescriptorProto)
	sortNested(d)
	return d
}

// sortNested sorts the fields, nested types and so on of a message, recursively.
func sortNested(d *descriptorpb.DescriptorProto) {
	sort.SliceStable(d.Field, func(i, j int) bool { return d.Field[i].GetNumber() < d.Field[j].GetNumber() })
	sort.SliceStable(d.NestedType, func(i, j int) bool { return d.NestedType[i].GetName() < d.NestedType[j].GetName() })
	sort.SliceStable(d.EnumType, func(i, j int) bool { return d.EnumType[i].GetName() < d.EnumType[j].GetName() })
	for _, n := range d.NestedType {
		sortNested(n)
	}
}

// rename changes the simple name of a declaration, in e and in its descriptor.
func rename(e *element, name string) {
	if name == e.name {
		return
	}
	suffix := strings.TrimPrefix(name, e.name)
	switch d := e.msg.(type) {
	case *descriptorpb.DescriptorProto:
		d.Name = &name
	case *descriptorpb.EnumDescriptorProto:
		d.Name = &name
		// Enum values belong to the scope of the package.
		for _, v := range d.Value {
			v.Name = proto.String(v.GetName() + suffix)
		}
	case *descriptorpb.ServiceDescriptorProto:
		d.Name = &name
	}
	e.name = name
}

// retarget changes references to renamed types, and to types nested in them. renamed maps old full names to new
// ones, with a leading dot.
func retarget(msg proto.Message, renamed map[string]string) {
	if len(renamed) == 0 {
		return
	}
	eachType(msg, func(_ string, name **string, _ *descriptorpb.FieldDescriptorProto) {
		// The longest prefix that was renamed is the type or one that encloses it.
		for at := len(**name); at > 0; at = strings.LastIndexByte((**name)[:at], '.') {
			if to, ok := renamed[(**name)[:at]]; ok {
				*name = proto.String(to + (**name)[at:])
				return
			}
		}
	})
}

// eachType calls f with every reference to a type in a declaration. path is the name of the referring element,
// relative to the declaration. *name is the reference, which f may change. field is set if the reference is the
// type of a field.
func eachType(msg proto.Message, f func(path string, name **string, field *descriptorpb.FieldDescriptorProto)) {
	field := func(path string, d *descriptorpb.FieldDescriptorProto) {
		if d.TypeName != nil {
			f(join(path, d.GetName()), &d.TypeName, d)
		}
		// The extended message is a reference, but not the type of the field.
		if d.Extendee != nil {
			f(join(path, d.GetName()), &d.Extendee, nil)
		}
	}
	var message func(path string, d *descriptorpb.DescriptorProto)
	message = func(path string, d *descriptorpb.DescriptorProto) {
		for _, x := range d.Field {
			field(path, x)
		}
		for _, x := range d.Extension {
			field(path, x)
		}
		for _, n := range d.NestedType {
			message(join(path, n.GetName()), n)
		}
	}

	switch d := msg.(type) {
	case *descriptorpb.DescriptorProto:
		message("", d)
	case *descriptorpb.FieldDescriptorProto:
		field("", d)
	case *descriptorpb.ServiceDescriptorProto:
		for _, x := range d.Method {
			f(x.GetName(), &x.InputType, nil)
			f(x.GetName(), &x.OutputType, nil)
		}
	}
}

// typesIn calls f with the full name of every message and enum in a declaration, including itself.
func typesIn(e *element, f func(full string)) {
	var message func(full string, d *descriptorpb.DescriptorProto)
	message = func(full string, d *descriptorpb.DescriptorProto) {
		f(full)
		for _, n := range d.NestedType {
			message(full+"."+n.GetName(), n)
		}
		for _, n := range d.EnumType {
			f(full + "." + n.GetName())
		}
	}
	switch d := e.msg.(type) {
	case *descriptorpb.DescriptorProto:
		message(e.full(), d)
	case *descriptorpb.EnumDescriptorProto:
		f(e.full())
	}
}

// extensionsIn calls f with every extension in a declaration.
func extensionsIn(msg proto.Message, f func(*descriptorpb.FieldDescriptorProto)) {
	switch d := msg.(type) {
	case *descriptorpb.FieldDescriptorProto:
		f(d)
	case *descriptorpb.DescriptorProto:
		for _, x := range d.Extension {
			f(x)
		}
		for _, n := range d.NestedType {
			extensionsIn(n, f)
		}
	}
}

// replaceType replaces the message or enum type of a field by a scalar type with the same encoding.
func replaceType(f *descriptorpb.FieldDescriptorProto) {
	// Enum values are varints, and messages are length-delimited.
	if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM {
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
		f.DefaultValue = nil
		return
	}
	f.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
}

// isGuessed reports whether a file, given its name, was derived from a script or class. Such files have a space
// in their name; those of descriptors have none.
func isGuessed(name string) bool { return strings.ContainsRune(name, ' ') }
