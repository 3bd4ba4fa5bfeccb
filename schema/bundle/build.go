package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A builder makes descriptors of definitions.
type builder struct {
	*Extractor
	ctx   context.Context
	notes map[string]string
	open  []Unresolved

	// by full name
	messages map[string]*message
	enums    map[string]*enum

	// before the definitions are named
	isEnum  map[string]bool
	renamed map[*def]string
	locals  map[string][]*def

	// by package and syntax
	files map[string]*descriptorpb.FileDescriptorProto

	// of a message: names of the types in it
	children map[string][]string

	// packages that need proto2
	second map[string]bool

	// types of descriptors among the scripts
	outside map[string]bool

	// those by their word in scripts
	outsiders map[string][]outsider

	// scripts by the keys of webpack's modules in them
	keyed map[string][]string
}

func newBuilder(ctx context.Context, e *Extractor) *builder {
	return &builder{
		Extractor: e, ctx: ctx, notes: map[string]string{},
		messages: map[string]*message{}, enums: map[string]*enum{},
		isEnum: map[string]bool{}, renamed: map[*def]string{}, locals: map[string][]*def{},
		files: map[string]*descriptorpb.FileDescriptorProto{}, children: map[string][]string{},
		outside: map[string]bool{}, outsiders: map[string][]outsider{}, second: map[string]bool{},
	}
}

func (b *builder) unresolved(element string, p Place, reason string) {
	if isStandard(element) { // protobuf's own declaration stands for it
		return
	}
	b.open = append(b.open, Unresolved{element, p, reason})
}

// build returns a file for each package and syntax.
func (b *builder) build() []*descriptorpb.FileDescriptorProto {
	b.index()
	b.indexOutside()
	b.secondSyntax()
	for _, full := range append(slices.Sorted(maps.Keys(b.messages)), slices.Sorted(maps.Keys(b.enums))...) {
		if parent := b.parentOf(full); parent != "" {
			b.children[parent] = append(b.children[parent], full)
		}
	}
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
			syntax := e.syntax
			if syntax == "" && b.second[packageOfRoot(b, full)] {
				syntax = "proto2"
			}
			f := b.file(full, syntax)
			f.EnumType = append(f.EnumType, b.enum(full, f.GetSyntax()))
		}
	}
	b.buildServices()
	for _, x := range b.Extractor.extensions {
		if b.ctx.Err() != nil {
			return nil
		}
		if !validFull(x.full) || x.full != dotted(packageOf(x.full), x.name) || x.mapKey != 0 || !validNumber(x.no) {
			b.unresolved(x.full, x.place, "its name, number or type is none that an extension can have; it is left out")
			continue
		}
		f := b.file(x.full, "proto2")
		fd := b.field(packageOf(x.full), "proto2", x, &descriptorpb.DescriptorProto{})
		if target := b.resolve(x.extendee); target != "" && fd.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
			fd.Extendee = proto.String("." + target)
			b.addExtension(f, x.full, fd)
		} else {
			b.unresolved(x.full, x.place, "what it extends is not there; it is left out")
		}
	}
	var list []*descriptorpb.FileDescriptorProto
	for _, key := range slices.Sorted(maps.Keys(b.files)) {
		list = append(list, b.files[key])
	}
	return list
}

// addExtension puts an extension into the message that its name is in, or at
// the file's level.
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

// within returns the message of a full name in a tree, or nil.
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

func validFull(full string) bool {
	for _, part := range strings.Split(full, ".") {
		if !validName(part) {
			return false
		}
	}
	return true
}

func validNumber(no int64) bool { return no > 0 && no < 1<<29 && (no < 19000 || no >= 20000) }

func validName(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func packageOf(full string) string { return full[:max(strings.LastIndexByte(full, '.'), 0)] }
func baseOf(full string) string    { return full[strings.LastIndexByte(full, '.')+1:] }

// parentOf returns the message that a name is nested in, or "".
func (b *builder) parentOf(full string) string {
	if parent := packageOf(full); b.messages[parent] != nil {
		return parent
	}
	return ""
}

// file returns the file for the package of a full name, in a syntax.
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

// syntaxOf returns the syntax that a message needs, with all nested in it.
func (b *builder) syntaxOf(m *message) string {
	if m.syntax != "" {
		return m.syntax
	}
	if b.second[packageOfRoot(b, strings.TrimPrefix(m.full, "."))] {
		return "proto2"
	}
	return "proto3"
}

// secondSyntax finds the packages that proto2 is written in, where an output
// does not say so, by what proto3 does not have.
func (b *builder) secondSyntax() {
	for full, m := range b.messages {
		for _, f := range m.fields {
			enum := b.enums[b.resolveQuietly(f.ref)]
			if f.required || f.group || f.value != nil || f.valueRef != "" || enum != nil && enum.syntax == "proto2" {
				if m.syntax == "" {
					b.second[packageOfRoot(b, full)] = true
				}
			}
		}
	}
	for _, x := range b.Extractor.extensions {
		b.second[packageOfRoot(b, b.resolve(x.extendee))] = true
	}
	for full, e := range b.enums {
		if e.syntax == "proto2" {
			b.second[packageOfRoot(b, full)] = true
		}
	}
}

// packageOfRoot returns the package of the outermost message around a name.
func packageOfRoot(b *builder, full string) string {
	pkg := packageOf(full)
	for b.messages[pkg] != nil {
		pkg = packageOf(pkg)
	}
	return pkg
}

func (b *builder) message(full, syntax string) *descriptorpb.DescriptorProto {
	m := b.messages[full]
	d := &descriptorpb.DescriptorProto{Name: proto.String(baseOf(full))}
	oneofs := map[string]int32{}
	numbers := map[int64]bool{}
	names := map[string]bool{}
	for _, f := range m.fields {
		element := full + "." + f.name
		switch {
		case !validName(f.name):
			b.unresolved(element, f.place, "its name is no protobuf name; it is left out")
			continue
		case !validNumber(f.no):
			b.unresolved(element, f.place, fmt.Sprintf("%d is no field number; it is left out", f.no))
			continue
		case numbers[f.no] || names[f.name]:
			b.unresolved(element, f.place, "another field has its name or number; it is left out")
			continue
		}
		numbers[f.no], names[f.name] = true, true
		fd := b.field(full, syntax, f, d)
		if f.oneof != "" && validName(f.oneof) {
			i, ok := oneofs[f.oneof]
			if !ok {
				i = int32(len(d.OneofDecl))
				oneofs[f.oneof] = i
				d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String(f.oneof)})
			}
			fd.OneofIndex = proto.Int32(i)
		}
		d.Field = append(d.Field, fd)
	}
	if syntax == "proto3" {
		synthesize(d, m.fields)
	}
	b.nest(d, full, syntax)
	return d
}

// nest adds the types that are nested in a message.
func (b *builder) nest(d *descriptorpb.DescriptorProto, full, syntax string) {
	for _, name := range b.children[full] {
		if b.messages[name] != nil {
			d.NestedType = append(d.NestedType, b.message(name, syntax))
		} else {
			d.EnumType = append(d.EnumType, b.enum(name, syntax))
		}
	}
}

// synthesize adds the oneofs of proto3's optional fields, after all others.
func synthesize(d *descriptorpb.DescriptorProto, fields []*field) {
	optional := map[int64]bool{}
	for _, f := range fields {
		optional[f.no] = f.presence && f.oneof == "" && !f.repeated && f.mapKey == 0
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

func (b *builder) enum(full, syntax string) *descriptorpb.EnumDescriptorProto {
	e := b.enums[full]
	d := &descriptorpb.EnumDescriptorProto{Name: proto.String(baseOf(full))}
	suffix := ""
	if orig := strings.TrimPrefix(e.full, "."); orig != full {
		suffix = strings.TrimPrefix(full, orig) // values of both stand in one scope
	}
	values := e.values
	if syntax == "proto3" && (len(values) == 0 || values[0].no != 0) {
		// proto3 wants zero first.
		i := slices.IndexFunc(values, func(v enumValue) bool { return v.no == 0 })
		if i > 0 {
			values = append([]enumValue{values[i]}, slices.Delete(slices.Clone(values), i, i+1)...)
		} else {
			values = append([]enumValue{{strings.ToUpper(snake(baseOf(full))) + "_UNSPECIFIED", 0}}, values...)
			b.unresolved(full, e.place, "it has no value 0, as proto3 wants; one was added")
		}
	}
	numbers, names := map[int32]bool{}, map[string]bool{}
	for _, v := range values {
		if !validName(v.name) || names[v.name] {
			b.unresolved(full+"."+v.name, e.place, "its name is no protobuf name or there twice; it is left out")
			continue
		}
		names[v.name] = true
		if numbers[v.no] && d.Options == nil {
			d.Options = &descriptorpb.EnumOptions{AllowAlias: proto.Bool(true)}
		}
		numbers[v.no] = true
		d.Value = append(d.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(v.name + suffix), Number: proto.Int32(v.no)})
	}
	if len(d.Value) == 0 {
		d.Value = append(d.Value, &descriptorpb.EnumValueDescriptorProto{
			Name: proto.String(strings.ToUpper(snake(baseOf(full))) + "_UNSPECIFIED"), Number: proto.Int32(0),
		})
	}
	return d
}

// snake returns fooBar as foo_bar.
func snake(name string) string {
	var out []byte
	for i, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			if i > 0 && name[i-1] != '_' {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}
