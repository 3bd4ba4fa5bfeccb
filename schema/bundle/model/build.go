package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"unwire/schema/bundle/protoname"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A builder converts the definitions extracted from scripts to descriptors.
type builder struct {
	// Definitions are the extracted definitions that are converted.
	*Definitions
	// ctx ends the work early.
	ctx context.Context
	// notes are comments about messages, fields and other elements, by full name.
	notes map[string]string
	// open are the messages, fields and other elements whose definitions are incomplete.
	open []Unresolved

	// messages maps full names to message definitions.
	messages map[string]*Message
	// enums maps full names to enum definitions.
	enums map[string]*Enum

	// isEnum has the full names of enums as they are in the scripts, before index resolves conflicts of names.
	isEnum map[string]bool
	// renamed maps each definition to its final full name. It lacks those that were dropped.
	renamed map[*Def]string
	// locals maps the names by which scripts refer to types (Foo, Outer_Inner) to their definitions.
	locals map[string][]*Def

	// files maps package and syntax to the file that is being built.
	files map[string]*descriptorpb.FileDescriptorProto

	// children maps the full name of each message to the names of the types nested in it.
	children map[string][]string

	// second has the packages whose files must use the syntax proto2.
	second map[string]bool

	// outside has the full names of types that are defined by descriptors embedded in scripts.
	outside map[string]bool

	// outsiders maps the names by which scripts refer to types to those defined by embedded descriptors.
	outsiders map[string][]outsider

	// keyed maps the keys of webpack modules to the scripts that contain them. It is built on first use.
	keyed map[string][]string
}

// newBuilder returns a builder for the definitions d. If ctx ends, the result is incomplete.
func newBuilder(ctx context.Context, d *Definitions) *builder {
	return &builder{
		Definitions: d, ctx: ctx, notes: map[string]string{},
		messages: map[string]*Message{}, enums: map[string]*Enum{},
		isEnum: map[string]bool{}, renamed: map[*Def]string{}, locals: map[string][]*Def{},
		files: map[string]*descriptorpb.FileDescriptorProto{}, children: map[string][]string{},
		outside: map[string]bool{}, outsiders: map[string][]outsider{}, second: map[string]bool{},
	}
}

// unresolved records that the definition of an element is incomplete, with the reason. p is its place in the
// script.
func (b *builder) unresolved(element string, p Place, reason string) {
	// protobuf's own declaration is used instead.
	if protoname.IsStandard(element) {
		return
	}
	b.open = append(b.open, Unresolved{element, p, reason})
}

// build returns the finished file descriptors, one for each package and syntax.
func (b *builder) build() []*descriptorpb.FileDescriptorProto {
	b.index()
	b.declareParents()
	b.indexOutside()
	b.secondSyntax()

	// Sorted names make the result independent of the order of the files.
	for _, full := range append(slices.Sorted(maps.Keys(b.messages)), slices.Sorted(maps.Keys(b.enums))...) {
		if parent := b.parentOf(full); parent != "" {
			b.children[parent] = append(b.children[parent], full)
		}
	}

	// Only outermost types are added here; they bring the types inside them.
	for _, full := range slices.Sorted(maps.Keys(b.messages)) {
		if b.ctx.Err() != nil {
			return nil
		}
		if parent := b.parentOf(full); parent == "" {
			m := b.messages[full]
			f := b.file(full, b.syntaxOf(m))
			f.MessageType = append(f.MessageType, b.message(full, b.syntaxOf(m)))
		}
	}
	for _, full := range slices.Sorted(maps.Keys(b.enums)) {
		if parent := b.parentOf(full); parent == "" {
			e := b.enums[full]
			syntax := e.Syntax
			if syntax == "" && b.second[packageOfRoot(b, full)] {
				syntax = "proto2"
			}
			f := b.file(full, syntax)
			f.EnumType = append(f.EnumType, b.enum(full, f.GetSyntax()))
		}
	}

	b.buildServices()
	for _, x := range b.Definitions.Extensions {
		if b.ctx.Err() != nil {
			return nil
		}
		if !protoname.ValidFull(x.Full) || x.Full != protoname.Join(protoname.Package(x.Full), x.Name) || x.MapKey != 0 || !protoname.ValidNumber(x.Number) {
			b.unresolved(x.Full, x.Place, "an extension cannot have its name, number or type, so extract left it out")
			continue
		}
		f := b.file(x.Full, "proto2")
		fd := b.field(protoname.Package(x.Full), "proto2", x, &descriptorpb.DescriptorProto{})
		if target := b.resolve(x.Extendee); target != "" && fd.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
			fd.Extendee = proto.String("." + target)
			b.addExtension(f, x.Full, fd)
		} else {
			b.unresolved(x.Full, x.Place, "the message that it extends was not found, so extract left it out")
		}
	}

	// Sorted files make the output stable between runs.
	var list []*descriptorpb.FileDescriptorProto
	for _, key := range slices.Sorted(maps.Keys(b.files)) {
		list = append(list, b.files[key])
	}
	return list
}

// addExtension adds an extension to the message in which it is declared according to its full name, or else to
// the file.
func (b *builder) addExtension(f *descriptorpb.FileDescriptorProto, full string, fd *descriptorpb.FieldDescriptorProto) {
	parent := b.parentOf(full)
	for _, m := range f.MessageType {
		if in := within(m, strings.TrimPrefix(f.GetPackage()+".", ".")+m.GetName(), parent); in != nil {
			in.Extension = append(in.Extension, fd)
			return
		}
	}
	f.Extension = append(f.Extension, fd)
}

// within returns the message with the full name want, if it is m or nested in m, or nil. full is the full name
// of m.
func within(m *descriptorpb.DescriptorProto, full, want string) *descriptorpb.DescriptorProto {
	if full == want {
		return m
	}
	for _, n := range m.NestedType {
		if in := within(n, full+"."+n.GetName(), want); in != nil {
			return in
		}
	}
	return nil
}

// parentOf returns the full name of the message in which the type full is nested, or "".
func (b *builder) parentOf(full string) string {
	if parent := protoname.Package(full); b.messages[parent] != nil {
		return parent
	}
	return ""
}

// file returns the file being built for the package of a full name and a syntax.
func (b *builder) file(full, syntax string) *descriptorpb.FileDescriptorProto {
	pkg := packageOfRoot(b, full)
	if syntax == "" {
		syntax = "proto3"
	}
	key := pkg + " " + syntax
	f := b.files[key]
	if f == nil {
		f = &descriptorpb.FileDescriptorProto{Name: proto.String(key + ".proto")}
		if pkg != "" {
			f.Package = proto.String(pkg)
		}
		f.Syntax = proto.String(syntax)
		b.files[key] = f
	}
	return f
}

// syntaxOf returns the syntax that a message with all its nested types needs: "proto2" or "proto3".
func (b *builder) syntaxOf(m *Message) string {
	if m.Syntax != "" {
		return m.Syntax
	}
	if b.second[packageOfRoot(b, strings.TrimPrefix(m.Full, "."))] {
		return "proto2"
	}
	return "proto3"
}

// secondSyntax finds the packages that must use the syntax proto2, although the generated code does not say so,
// because they use features that proto3 lacks.
func (b *builder) secondSyntax() {
	for full, m := range b.messages {
		for _, f := range m.Fields {
			enum := b.enums[b.resolveQuietly(f.Ref)]
			if f.Required || f.Group || f.Value != nil || f.ValueRef != "" || enum != nil && enum.Syntax == "proto2" {
				if m.Syntax == "" {
					b.second[packageOfRoot(b, full)] = true
				}
			}
		}
	}
	for _, x := range b.Definitions.Extensions {
		b.second[packageOfRoot(b, b.resolve(x.Extendee))] = true
	}
	for full, e := range b.enums {
		if e.Syntax == "proto2" {
			b.second[packageOfRoot(b, full)] = true
		}
	}
}

// packageOfRoot returns the package of the outermost message that encloses the type full.
func packageOfRoot(b *builder, full string) string {
	pkg := protoname.Package(full)
	for b.messages[pkg] != nil {
		pkg = protoname.Package(pkg)
	}
	return pkg
}

// message builds the descriptor of the message with the given full name.
func (b *builder) message(full, syntax string) *descriptorpb.DescriptorProto {
	// Names and numbers must be unique within a message, or protoc refuses the file.
	m := b.messages[full]
	d := &descriptorpb.DescriptorProto{Name: proto.String(protoname.Base(full))}
	oneofs := map[string]int32{}
	numbers := map[int64]bool{}
	names := map[string]bool{}
	for _, f := range m.Fields {
		element := full + "." + f.Name
		switch {
		case !protoname.Valid(f.Name):
			b.unresolved(element, f.Place, "its name is not valid in protobuf, so extract left it out")
			continue
		case !protoname.ValidNumber(f.Number):
			b.unresolved(element, f.Place, fmt.Sprintf("%d is not a valid field number, so extract left the field out", f.Number))
			continue
		// Only hand-written or damaged code has such fields.
		case numbers[f.Number] || names[f.Name]:
			b.unresolved(element, f.Place, "another field has its name or number, so extract left it out")
			continue
		}
		numbers[f.Number], names[f.Name] = true, true
		fd := b.field(full, syntax, f, d)
		if f.Oneof != "" && protoname.Valid(f.Oneof) {
			i, ok := oneofs[f.Oneof]
			if !ok {
				i = int32(len(d.OneofDecl))
				oneofs[f.Oneof] = i
				d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String(f.Oneof)})
			}
			fd.OneofIndex = proto.Int32(i)
		}
		d.Field = append(d.Field, fd)
	}

	// proto3 marks an optional field by a oneof of its own.
	if syntax == "proto3" {
		synthesize(d, m.Fields)
	}
	b.nest(d, full, syntax)
	return d
}

// nest adds the types nested in the message full to its descriptor d.
func (b *builder) nest(d *descriptorpb.DescriptorProto, full, syntax string) {
	for _, name := range b.children[full] {
		if b.messages[name] != nil {
			d.NestedType = append(d.NestedType, b.message(name, syntax))
		} else {
			d.EnumType = append(d.EnumType, b.enum(name, syntax))
		}
	}
}

// synthesize adds the synthetic oneofs that proto3 requires for optional fields. They must follow all other
// oneofs.
func synthesize(d *descriptorpb.DescriptorProto, fields []*Field) {
	optional := map[int64]bool{}
	for _, f := range fields {
		optional[f.Number] = f.Presence && f.Oneof == "" && !f.Repeated && f.MapKey == 0
	}
	for _, fd := range d.Field {
		if !optional[int64(fd.GetNumber())] || fd.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
			continue
		}
		fd.Proto3Optional = proto.Bool(true)
		fd.OneofIndex = proto.Int32(int32(len(d.OneofDecl)))
		d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + fd.GetName())})
	}
}

// enum builds the descriptor of the enum with the given full name.
func (b *builder) enum(full, syntax string) *descriptorpb.EnumDescriptorProto {
	e := b.enums[full]
	d := &descriptorpb.EnumDescriptorProto{Name: proto.String(protoname.Base(full))}
	suffix := ""
	if orig := strings.TrimPrefix(e.Full, "."); orig != full {
		// The values of a renamed enum are renamed too, because both enums share the scope of their values.
		suffix = strings.TrimPrefix(full, orig)
	}

	values := e.Values
	if syntax == "proto3" && (len(values) == 0 || values[0].Number != 0) {
		// In proto3 the first value must be zero.
		i := slices.IndexFunc(values, func(v EnumValue) bool { return v.Number == 0 })
		if i > 0 {
			values = append([]EnumValue{values[i]}, slices.Delete(slices.Clone(values), i, i+1)...)
		} else {
			values = append([]EnumValue{{strings.ToUpper(protoname.Snake(protoname.Base(full))) + "_UNSPECIFIED", 0}}, values...)
			b.unresolved(full, e.Place, "it has no value 0, which proto3 requires, so extract added one")
		}
	}

	numbers, names := map[int32]bool{}, map[string]bool{}
	for _, v := range values {
		if !protoname.Valid(v.Name) || names[v.Name] {
			b.unresolved(full+"."+v.Name, e.Place, "its name is not valid in protobuf or occurs twice, so extract left it out")
			continue
		}
		names[v.Name] = true
		// Two names for one number need an option.
		if numbers[v.Number] && d.Options == nil {
			d.Options = &descriptorpb.EnumOptions{AllowAlias: proto.Bool(true)}
		}
		numbers[v.Number] = true
		d.Value = append(d.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(v.Name + suffix), Number: proto.Int32(v.Number)})
	}

	if len(d.Value) == 0 {
		d.Value = append(d.Value, &descriptorpb.EnumValueDescriptorProto{
			Name: proto.String(strings.ToUpper(protoname.Snake(protoname.Base(full))) + "_UNSPECIFIED"), Number: proto.Int32(0),
		})
	}
	return d
}
