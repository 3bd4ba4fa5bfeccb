package bundle

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// resolveQuietly is resolve for a reference that may be nil.
func (b *builder) resolveQuietly(r *ref) string {
	if r == nil {
		return ""
	}
	return b.resolve(r)
}

// resolve returns the full name of what a reference names, or "".
func (b *builder) resolve(r *ref) string {
	if r.to != nil {
		if name := b.renamed[r.to]; name != "" {
			return name
		}
	}
	if (r.module != "" || r.loaded != "") && r.to == nil {
		if o, ok := b.followImport(r); ok && o.to != nil {
			if name := b.renamed[o.to]; name != "" && (b.enums[name] != nil) == r.enum {
				return name
			}
		}
	}
	if r.full != "" {
		full := strings.TrimPrefix(r.full, ".")
		if b.messages[full] != nil || b.enums[full] != nil || b.elsewhere(full) {
			return full
		}
		if r.local == "" {
			return ""
		}
	}
	return b.byName(r)
}

// elsewhere says whether a type is declared by a descriptor of the scripts, or
// is one that comes with protobuf.
func (b *builder) elsewhere(full string) bool {
	return b.outside[full] || isStandard(full)
}

// An outsider is a type that a descriptor of the scripts declares.
type outsider struct {
	full, script string
	enum         bool
}

// indexOutside names the types that the scripts' descriptors declare.
func (b *builder) indexOutside() {
	var walk func(script, pkg string, inside int, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto)
	enter := func(script, full string, inside int, enum bool) {
		b.outside[full] = true
		parts := strings.Split(full, ".")
		word := strings.Join(parts[max(len(parts)-1-inside, 0):], "_") // Outer_Inner
		b.outsiders[word] = append(b.outsiders[word], outsider{full, script, enum})
	}
	walk = func(script, scope string, inside int, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto) {
		for _, m := range messages {
			full := dotted(scope, m.GetName())
			enter(script, full, inside, false)
			walk(script, full, inside+1, m.NestedType, m.EnumType)
		}
		for _, e := range enums {
			enter(script, dotted(scope, e.GetName()), inside, true)
		}
	}
	for i, f := range b.Extractor.files {
		walk(b.Extractor.from[i], f.GetPackage(), 0, f.MessageType, f.EnumType)
	}
}

// byName resolves a reference by its word in the script: Foo, Outer_Inner, or
// with what a bundler appends to words that are there twice: Foo2, Foo$1.
func (b *builder) byName(r *ref) string {
	word := r.local
	// of the runtime
	if r.module != "" && !strings.HasPrefix(r.module, ".") && wellKnown(word) {
		return "google.protobuf." + word
	}
	for range 2 {
		name, several := b.nearest(r, word)
		if name != "" || several {
			return name
		}
		if wellKnown(word) {
			return "google.protobuf." + word
		}
		word = strings.TrimRight(word, "0123456789")
		word = strings.TrimSuffix(strings.TrimSuffix(word, "$"), "_")
	}
	return ""
}

// nearest returns the type that a word names: in the module that it is imported from, or
// else in its own file, or else anywhere; and whether there are several that it might be.
func (b *builder) nearest(r *ref, word string) (name string, several bool) {
	from := ""
	if strings.HasPrefix(r.module, ".") {
		from = path.Join(path.Dir(r.place.File), r.module)
	}
	for _, fits := range []func(file string) bool{
		func(file string) bool { return from != "" && isModule(file, from) },
		func(file string) bool { return from == "" && file == r.place.File },
		func(string) bool { return true },
	} {
		for _, d := range b.locals[word] {
			full := b.renamed[d]
			if full == "" || (b.enums[full] != nil) != r.enum || !fits(d.place.File) {
				continue
			}
			if name != "" && name != full {
				return "", true
			}
			name = full
		}
		for _, o := range b.outsiders[word] {
			if o.enum != r.enum || !fits(o.script) {
				continue
			}
			if name != "" && name != o.full {
				return "", true
			}
			name = o.full
		}
		if name != "" {
			return name, false
		}
	}
	return "", false
}

// isModule says whether a file is what a module's path, without an ending or
// with one, leads to.
func isModule(file, module string) bool {
	rest, ok := strings.CutPrefix(file, module)
	switch strings.TrimPrefix(rest, "/index") {
	case "", ".js", ".mjs", ".cjs":
		return ok
	}
	return false
}

// wellKnown says whether a word names a type that comes with protobuf. Scripts
// import those from the runtime, which may be in another file.
func wellKnown(word string) bool {
	switch word {
	case "FileOptions", "MessageOptions", "FieldOptions", "OneofOptions", "EnumOptions", "EnumValueOptions", "ServiceOptions",
		"MethodOptions", "ExtensionRangeOptions", "FieldDescriptorProto", "EnumDescriptorProto", "ServiceDescriptorProto",
		"MethodDescriptorProto", "OneofDescriptorProto", "EnumValueDescriptorProto", "SourceCodeInfo", "UninterpretedOption":
		return true
	case "Any", "Api", "Duration", "Empty", "FieldMask", "SourceContext", "Struct", "Value", "ListValue", "NullValue",
		"Timestamp", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
		"StringValue", "BytesValue", "FileDescriptorProto", "FileDescriptorSet", "DescriptorProto", "Type":
		return true
	}
	return false
}

// enumDefault sets a default that is a member of an enum, by number or name.
func (b *builder) enumDefault(element string, f *field, fd *descriptorpb.FieldDescriptorProto) {
	e := b.enums[strings.TrimPrefix(fd.GetTypeName(), ".")]
	if e != nil {
		for _, v := range e.values {
			if fmt.Sprint(v.no) == f.valueRef || v.name == f.valueRef || strings.HasSuffix(v.name, "_"+f.valueRef) {
				fd.DefaultValue = proto.String(v.name)
				return
			}
		}
	}
	b.unresolved(element, f.place, "its default is no value of its enum")
}

func (b *builder) buildServices() {
	by := map[string][]*service{}
	for _, s := range b.Extractor.services {
		if full, ok := b.named(&s.def); ok {
			by[full] = append(by[full], s)
		}
	}
	for _, full := range slices.Sorted(maps.Keys(by)) {
		kept, _ := choose(b.ctx, by[full], b.coversService)
		for i, s := range kept {
			name := full
			if i > 0 {
				name = fmt.Sprintf("%s_%d", full, i+1)
				b.notes[name] = "Another shape of " + full + " in the same source."
				b.unresolved(full, s.place, "a second definition has another shape: it is kept as "+name)
			}
			f := b.file(name, b.packageSyntax(name))
			f.Service = append(f.Service, b.service(name, s))
		}
	}
}

// coversService says whether x says all that y says.
func (b *builder) coversService(x, y *service) bool {
	for _, n := range y.methods {
		i := slices.IndexFunc(x.methods, func(m *method) bool { return m.name == n.name })
		if i < 0 {
			return false
		}
		m := x.methods[i]
		stream := m.client == n.client && m.server == n.server && !m.unknown || n.unknown
		if !stream || n.idempotency != 0 && m.idempotency != n.idempotency {
			return false
		}
		if in, out := b.resolve(n.in), b.resolve(n.out); in != "" && in != b.resolve(m.in) || out != "" && out != b.resolve(m.out) {
			return false
		}
	}
	return true
}

// packageSyntax returns the syntax of the package's other definitions.
func (b *builder) packageSyntax(full string) string {
	if b.files[packageOf(full)+" proto3"] == nil && b.files[packageOf(full)+" proto2"] != nil {
		return "proto2"
	}
	return "proto3"
}

func (b *builder) service(full string, s *service) *descriptorpb.ServiceDescriptorProto {
	sd := &descriptorpb.ServiceDescriptorProto{Name: proto.String(baseOf(full))}
	names := map[string]bool{}
	for _, m := range s.methods {
		element := full + "." + m.name
		if !validName(m.name) || names[m.name] {
			b.unresolved(element, s.place, "its name is no protobuf name or there twice; it is left out")
			continue
		}
		names[m.name] = true
		md := &descriptorpb.MethodDescriptorProto{Name: proto.String(m.name)}
		if m.unknown {
			b.unresolved(element, s.place, "static code of this version of protobufjs does not tell its streaming kind; it is declared as unary")
		}
		md.InputType = b.payload(element, "request", m.in)
		md.OutputType = b.payload(element, "response", m.out)
		if m.client {
			md.ClientStreaming = proto.Bool(true)
		}
		if m.server {
			md.ServerStreaming = proto.Bool(true)
		}
		if m.idempotency != 0 {
			md.Options = &descriptorpb.MethodOptions{IdempotencyLevel: m.idempotency.Enum()}
		}
		sd.Method = append(sd.Method, md)
	}
	return sd
}

// payload returns the type of a method's request or response. Where it is not
// there Empty stands for it: a decoder keeps all fields of it as unknown.
func (b *builder) payload(element, what string, r *ref) *string {
	name := b.resolve(r)
	if name == "" || b.enums[name] != nil {
		word := r.local
		if r.full != "" {
			word = r.full
		}
		b.notes[element] = strings.TrimSpace(b.notes[element] + fmt.Sprintf(" The type of its %s was not found; Empty stands for it.", what))
		b.unresolved(element, r.place, fmt.Sprintf("the type of its %s, %s, was not found; google.protobuf.Empty stands for it", what, word))
		name = "google.protobuf.Empty"
	}
	return proto.String("." + name)
}
