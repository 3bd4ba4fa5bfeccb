package extract

import (
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// An element is what a file declares at its top level.
type element struct {
	pkg, name string
	syntax    syntax

	// DescriptorProto, EnumDescriptorProto, ServiceDescriptorProto or FieldDescriptorProto
	msg     proto.Message
	options *descriptorpb.FileOptions

	// it was renamed, where it was
	before proto.Message

	// within a cycle of packages
	layer int

	// of a script's code, not of a descriptor
	guessed bool
}

func (e *element) full() string { return join(e.pkg, e.name) }

func join(pkg, name string) string {
	if pkg == "" {
		return name
	}
	return pkg + "." + name
}

// A syntax is what of a file decides how its declarations are read.
type syntax struct {
	name     string // proto2, proto3 or editions
	edition  descriptorpb.Edition
	features string // of the file's options, serialized
}

// subsumes reports whether what e declares is the same, or covers the other.
func (e *element) subsumes(other *element) bool {
	msg := e.msg
	if e.before != nil {
		msg = e.before
	}
	return sameShape(msg, other.msg) || e.covers(other)
}

// fieldsOf is how many fields a declared message has.
func fieldsOf(e *element) int {
	d, _ := e.msg.(*descriptorpb.DescriptorProto)
	return len(d.GetField())
}

// openEnum makes an enum an open one where another declaration of it is: messages of
// proto3 can refer to no other, and those of proto2 to both.
func (e *element) openEnum(other *element) {
	if _, ok := e.msg.(*descriptorpb.EnumDescriptorProto); ok && e.syntax.name == "proto2" && other.syntax.name == "proto3" {
		e.syntax, e.options = other.syntax, other.options
	}
}

func prefixOf(pkg string) string {
	if pkg == "" {
		return ""
	}
	return pkg + "."
}

// elementsOf are the declarations of a file, as copies.
func elementsOf(f *descriptorpb.FileDescriptorProto) []*element {
	f = proto.Clone(f).(*descriptorpb.FileDescriptorProto)
	syn := syntax{name: f.GetSyntax(), edition: f.GetEdition()}
	if syn.name == "" {
		syn.name = "proto2"
	}
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

// complete adds what a descriptor may leave out and a compiler writes.
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

func completeField(f *descriptorpb.FieldDescriptorProto) {
	if f.JsonName == nil {
		f.JsonName = proto.String(jsonname.Of(f.GetName()))
	}
}

// sameShape says whether two declarations are the same.
func sameShape(a, b proto.Message) bool {
	if a.ProtoReflect().Descriptor() != b.ProtoReflect().Descriptor() {
		return false
	}
	if x, ok := a.(*descriptorpb.DescriptorProto); ok {
		return proto.Equal(canonical(x), canonical(b.(*descriptorpb.DescriptorProto)))
	}
	return proto.Equal(a, b)
}

// canonical orders what has no order.
func canonical(d *descriptorpb.DescriptorProto) *descriptorpb.DescriptorProto {
	d = proto.Clone(d).(*descriptorpb.DescriptorProto)
	sortNested(d)
	return d
}

func sortNested(d *descriptorpb.DescriptorProto) {
	sort.SliceStable(d.Field, func(i, j int) bool { return d.Field[i].GetNumber() < d.Field[j].GetNumber() })
	sort.SliceStable(d.NestedType, func(i, j int) bool { return d.NestedType[i].GetName() < d.NestedType[j].GetName() })
	sort.SliceStable(d.EnumType, func(i, j int) bool { return d.EnumType[i].GetName() < d.EnumType[j].GetName() })
	for _, n := range d.NestedType {
		sortNested(n)
	}
}

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
		for _, v := range d.Value { // they stand in the package's scope
			v.Name = proto.String(v.GetName() + suffix)
		}
	case *descriptorpb.ServiceDescriptorProto:
		d.Name = &name
	}
	e.name = name
}

// retarget replaces names of types, and of what is nested in them.
func retarget(msg proto.Message, renamed map[string]string) {
	if len(renamed) == 0 {
		return
	}
	eachType(msg, func(_ string, name **string, _ *descriptorpb.FieldDescriptorProto) {
		for at := len(**name); at > 0; at = strings.LastIndexByte((**name)[:at], '.') {
			if to, ok := renamed[(**name)[:at]]; ok {
				*name = proto.String(to + (**name)[at:])
				return
			}
		}
	})
}

// eachType calls f with every name of a type in a declaration; where it is of a
// field, with that too. path is the element's name below the declaration.
func eachType(msg proto.Message, f func(path string, name **string, field *descriptorpb.FieldDescriptorProto)) {
	field := func(path string, d *descriptorpb.FieldDescriptorProto) {
		if d.TypeName != nil {
			f(join(path, d.GetName()), &d.TypeName, d)
		}
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

// typesIn calls f with the full name of every type that a declaration declares.
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

// extensionsIn calls f with the extensions that a declaration holds or is.
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

func replaceType(f *descriptorpb.FieldDescriptorProto) {
	if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM {
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
		f.DefaultValue = nil
		return
	}
	f.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
}

// isGuessed says whether a file was made of a script's definitions: those of
// descriptors have names of .proto files.
func isGuessed(name string) bool { return strings.ContainsRune(name, ' ') }
