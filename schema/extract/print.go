package extract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// Print returns the .proto source text of the set's files by path. Compiling a text gives the descriptor from
// which it was printed.
func (s *Set) Print() map[string]string {
	text := map[string]string{}
	names := symbolsOf(s.Files, s.Imports)
	for _, f := range s.Files {
		p := &printer{notes: s.Notes, syntax: f.GetSyntax(), names: names, pkg: f.GetPackage()}
		p.file(f)
		text[f.GetName()] = p.String()
	}
	return text
}

// A printer prints one .proto file.
type printer struct {
	// Builder collects the text of the file; its Write methods append to it.
	strings.Builder
	// notes maps the full names of elements to their comments.
	notes map[string]string
	// syntax is the syntax of the printed file.
	syntax string
	// depth is the current indentation level.
	depth int

	// names are the full names of all declared elements, for shortening references.
	names symbols
	// pkg is the package of the printed file.
	pkg string
}

// line prints one formatted line with the current indentation.
func (p *printer) line(format string, args ...any) {
	p.WriteString(strings.Repeat("  ", p.depth))
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// writeNote prints the comment of the element full, if it has one.
func (p *printer) writeNote(full string) {
	for _, line := range commentLines(p.notes[full]) {
		p.line("%s", strings.TrimRight("// "+line, " "))
	}
}

// file prints the whole .proto file.
func (p *printer) file(f *descriptorpb.FileDescriptorProto) {
	if p.syntax == "editions" {
		p.line("edition = %q;", strings.TrimPrefix(f.GetEdition().String(), "EDITION_"))
	} else {
		p.line("syntax = %q;", p.syntax)
	}
	if f.GetPackage() != "" {
		p.line("\npackage %s;", f.GetPackage())
	}
	if len(f.Dependency) > 0 {
		p.line("")
	}
	for _, d := range f.Dependency {
		p.line("import %q;", d)
	}
	if opts := optionList(f.Options); len(opts) > 0 {
		p.line("")
		for _, o := range opts {
			p.line("option %s;", o)
		}
	}

	for _, e := range f.EnumType {
		p.line("")
		p.enum(join(f.GetPackage(), e.GetName()), e)
	}
	for _, m := range f.MessageType {
		p.line("")
		p.message(join(f.GetPackage(), m.GetName()), m)
	}
	p.extensions(f.GetPackage(), f.Extension, f.MessageType)
	for _, s := range f.Service {
		p.line("")
		p.service(join(f.GetPackage(), s.GetName()), s)
	}
}

// message prints the declaration of a message.
func (p *printer) message(full string, m *descriptorpb.DescriptorProto) {
	p.writeNote(full)
	p.line("message %s {", m.GetName())
	p.body(full, m)
	p.line("}")
}

// body prints the declarations inside the message or group m, whose full name is full.
func (p *printer) body(full string, m *descriptorpb.DescriptorProto) {
	p.depth++
	for _, o := range optionList(m.Options) {
		p.line("option %s;", o)
	}

	// Entries of maps and groups are printed with their fields.
	maps := map[string]*descriptorpb.DescriptorProto{}
	groups := map[string]*descriptorpb.DescriptorProto{}
	for _, n := range m.NestedType {
		if n.GetOptions().GetMapEntry() {
			maps["."+full+"."+n.GetName()] = n
		}
	}
	for _, f := range slices.Concat(m.Field, m.Extension) {
		for _, n := range m.NestedType {
			if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_GROUP && f.GetTypeName() == "."+full+"."+n.GetName() {
				groups[f.GetTypeName()] = n
			}
		}
	}

	for _, e := range m.EnumType {
		p.enum(full+"."+e.GetName(), e)
	}
	for _, n := range m.NestedType {
		name := "." + full + "." + n.GetName()
		if maps[name] == nil && groups[name] == nil {
			p.message(full+"."+n.GetName(), n)
		}
	}

	p.fields(full, m, maps, groups)
	for _, r := range m.ExtensionRange {
		p.line("extensions %s%s;", span(r.GetStart(), r.GetEnd()-1, 1<<29-1), brackets(optionList(r.Options)))
	}
	for _, r := range m.ReservedRange {
		p.line("reserved %s;", span(r.GetStart(), r.GetEnd()-1, 1<<29-1))
	}
	p.reserved(m.ReservedName)
	p.extensions(full, m.Extension, m.NestedType)
	p.depth--
}

// fields prints the fields of a message in order. A oneof is printed where its first field is. maps and groups
// are the nested types of map entries and groups, by name.
func (p *printer) fields(full string, m *descriptorpb.DescriptorProto, maps, groups map[string]*descriptorpb.DescriptorProto) {
	done := map[int32]bool{}
	for _, f := range m.Field {
		if f.OneofIndex == nil || f.GetProto3Optional() {
			p.field(full, f, maps, groups, false)
			continue
		}
		i := f.GetOneofIndex()
		if done[i] || int(i) >= len(m.OneofDecl) {
			continue
		}
		done[i] = true
		p.line("oneof %s {", m.OneofDecl[i].GetName())
		p.depth++
		for _, o := range optionList(m.OneofDecl[i].Options) {
			p.line("option %s;", o)
		}
		// All members, wherever they are in the list.
		for _, x := range m.Field {
			if x.OneofIndex != nil && x.GetOneofIndex() == i && !x.GetProto3Optional() {
				p.field(full, x, maps, groups, true)
			}
		}
		p.depth--
		p.line("}")
	}
}

// field prints the declaration of a field, map or group. maps and groups are as in fields. Members of a oneof
// have no label.
func (p *printer) field(full string, f *descriptorpb.FieldDescriptorProto, maps, groups map[string]*descriptorpb.DescriptorProto, inOneof bool) {
	p.writeNote(full + "." + f.GetName())
	// A map is printed as map<K, V> instead of its entry type.
	if entry := maps[f.GetTypeName()]; entry != nil && len(entry.Field) == 2 {
		p.line("map<%s, %s> %s = %d%s;", p.typeName(f.GetTypeName()[1:], entry.Field[0]), p.typeName(f.GetTypeName()[1:], entry.Field[1]), f.GetName(), f.GetNumber(), brackets(fieldOptions(f)))
		return
	}
	label := ""
	switch {
	case f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED:
		label = "repeated "
	case f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REQUIRED:
		label = "required "
	case !inOneof && p.syntax == "proto2", f.GetProto3Optional():
		label = "optional "
	}
	// A group declares its message type in place.
	if group := groups[f.GetTypeName()]; group != nil {
		p.line("%sgroup %s = %d%s {", label, group.GetName(), f.GetNumber(), brackets(fieldOptions(f)))
		p.body(f.GetTypeName()[1:], group)
		p.line("}")
		return
	}
	p.line("%s%s %s = %d%s;", label, p.typeName(full, f), f.GetName(), f.GetNumber(), brackets(fieldOptions(f)))
}

// extensions prints extensions in order. Adjacent extensions of the same message share a block. scope is the
// full name of the message or package, and nested are the types nested in it.
func (p *printer) extensions(scope string, list []*descriptorpb.FieldDescriptorProto, nested []*descriptorpb.DescriptorProto) {
	groups := map[string]*descriptorpb.DescriptorProto{}
	for _, n := range nested {
		groups["."+join(scope, n.GetName())] = n
	}
	for i, x := range list {
		if i == 0 || list[i-1].GetExtendee() != x.GetExtendee() {
			if p.depth == 0 {
				p.line("")
			}
			p.line("extend %s {", p.names.reference(p.pkg, scope, x.GetExtendee()))
		}
		// Only a group prints the message that it declares.
		own := groups
		if x.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
			own = nil
		}
		p.depth++
		p.field(scope, x, nil, own, false)
		p.depth--
		if i == len(list)-1 || list[i+1].GetExtendee() != x.GetExtendee() {
			p.line("}")
		}
	}
}

// enum prints the declaration of an enum.
func (p *printer) enum(full string, e *descriptorpb.EnumDescriptorProto) {
	p.writeNote(full)
	p.line("enum %s {", e.GetName())
	p.depth++
	for _, o := range optionList(e.Options) {
		p.line("option %s;", o)
	}
	for _, v := range e.Value {
		p.writeNote(join(parentOf(full), v.GetName()))
		p.line("%s = %d%s;", v.GetName(), v.GetNumber(), brackets(optionList(v.Options)))
	}
	for _, r := range e.ReservedRange {
		p.line("reserved %s;", span(r.GetStart(), r.GetEnd(), 1<<31-1))
	}
	p.reserved(e.ReservedName)
	p.depth--
	p.line("}")
}

// reserved prints a statement that reserves names, if there are any.
func (p *printer) reserved(names []string) {
	for _, name := range names {
		if p.syntax == "editions" {
			p.line("reserved %s;", name)
		} else {
			p.line("reserved %q;", name)
		}
	}
}

// service prints the declaration of a service.
func (p *printer) service(full string, s *descriptorpb.ServiceDescriptorProto) {
	p.writeNote(full)
	p.line("service %s {", s.GetName())
	p.depth++
	for _, o := range optionList(s.Options) {
		p.line("option %s;", o)
	}
	for _, m := range s.Method {
		p.writeNote(full + "." + m.GetName())
		in, out := p.names.reference(p.pkg, full, m.GetInputType()), p.names.reference(p.pkg, full, m.GetOutputType())
		if m.GetClientStreaming() {
			in = "stream " + in
		}
		if m.GetServerStreaming() {
			out = "stream " + out
		}

		// A method without options ends with a semicolon instead of a block.
		opts := optionList(m.Options)
		if len(opts) == 0 {
			p.line("rpc %s(%s) returns (%s);", m.GetName(), in, out)
			continue
		}
		p.line("rpc %s(%s) returns (%s) {", m.GetName(), in, out)
		p.depth++
		for _, o := range opts {
			p.line("option %s;", o)
		}
		p.depth--
		p.line("}")
	}
	p.depth--
	p.line("}")
}

// span returns the range of numbers from "from" to "to", both inclusive, as in a .proto file. If to is most, it
// is written as "max".
func span(from, to, most int32) string {
	switch {
	case to >= most:
		return fmt.Sprintf("%d to max", from)
	case from == to:
		return strconv.Itoa(int(from))
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// typeName returns the type of a field as it is written in the scope with that full name.
func (p *printer) typeName(scope string, f *descriptorpb.FieldDescriptorProto) string {
	if f.TypeName != nil {
		return p.names.reference(p.pkg, scope, f.GetTypeName())
	}
	return strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
}

// brackets returns options in square brackets, or "" if there are none.
func brackets(opts []string) string {
	if len(opts) == 0 {
		return ""
	}
	return " [" + strings.Join(opts, ", ") + "]"
}

// fieldOptions returns the options of a field as name = value, including properties such as default and
// json_name.
func fieldOptions(f *descriptorpb.FieldDescriptorProto) []string {
	var list []string
	if f.DefaultValue != nil {
		list = append(list, "default = "+defaultText(f))
	}
	if f.JsonName != nil && f.GetJsonName() != jsonname.Of(f.GetName()) && f.Extendee == nil {
		list = append(list, "json_name = "+strconv.Quote(f.GetJsonName()))
	}
	return append(list, optionList(f.Options)...)
}

// defaultText returns a default value as it is written in a .proto file.
func defaultText(f *descriptorpb.FieldDescriptorProto) string {
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return quote(f.GetDefaultValue())
	// Default values of bytes are escaped already.
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return `"` + f.GetDefaultValue() + `"`
	}
	return f.GetDefaultValue()
}

// quote returns s as a string literal of a .proto file.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// optionList returns the options that are set, as name = value, in the order of their numbers. Custom options
// are left out, because their definitions are missing.
func optionList(opts proto.Message) []string {
	var list []string
	m := opts.ProtoReflect()
	if !m.IsValid() {
		return nil
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) || f.Name() == "map_entry" || f.Name() == "uninterpreted_option" {
			continue
		}
		if !f.IsList() {
			list = append(list, optionValues(string(f.Name()), f, m.Get(f))...)
			continue
		}
		for j := range m.Get(f).List().Len() {
			list = append(list, optionValues(string(f.Name()), f, m.Get(f).List().Get(j))...)
		}
	}
	return list
}

// optionValues returns an option as name = value. For a message-valued option, the result has one element for
// each field.
func optionValues(name string, f protoreflect.FieldDescriptor, v protoreflect.Value) []string {
	switch f.Kind() {
	case protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			return []string{name + " = " + string(d.Name())}
		}
		return nil
	case protoreflect.StringKind:
		return []string{name + " = " + quote(v.String())}
	case protoreflect.MessageKind:
		// A list of messages has no shorthand, so each is printed as an aggregate.
		if f.IsList() {
			text := prototext.MarshalOptions{}.Format(v.Message().Interface())
			return []string{name + " = { " + text + " }"}
		}
		var list []string
		fields := v.Message().Descriptor().Fields()
		for i := range fields.Len() {
			if sub := fields.Get(i); v.Message().Has(sub) && !sub.IsList() {
				list = append(list, optionValues(name+"."+string(sub.Name()), sub, v.Message().Get(sub))...)
			}
		}
		return list
	}
	return []string{name + " = " + v.String()}
}

// A Count is the number of declarations of each kind. Map entries and protobuf's own types are not counted.
type Count struct {
	// Messages is the number of message types, including nested ones.
	Messages int
	// Enums is the number of enums, including nested ones.
	Enums int
	// Services is the number of services.
	Services int
	// Fields is the number of fields of all messages.
	Fields int
}

// Count returns the number of declarations in the set by kind.
func (s *Set) Count() Count {
	var c Count
	var message func(d *descriptorpb.DescriptorProto)
	message = func(d *descriptorpb.DescriptorProto) {
		// Entries are synthetic.
		if d.GetOptions().GetMapEntry() {
			return
		}
		c.Messages++
		c.Fields += len(d.Field)
		c.Enums += len(d.EnumType)
		for _, n := range d.NestedType {
			message(n)
		}
	}
	for _, f := range s.Files {
		c.Enums += len(f.EnumType)
		c.Services += len(f.Service)
		for _, d := range f.MessageType {
			message(d)
		}
	}
	return c
}
