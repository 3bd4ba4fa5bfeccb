package model

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"unwire/schema/bundle/protoname"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/choice"
)

// resolveQuietly is resolve for a reference that may be nil, for which it returns "".
func (b *builder) resolveQuietly(r *Ref) string {
	if r == nil {
		return ""
	}
	return b.resolve(r)
}

// resolve returns the final full name of the type that a reference refers to, or "" if it is unknown. It tries,
// in this order: the definition that the expression led to, the import, the full name, and the name in the
// script.
func (b *builder) resolve(r *Ref) string {
	if r.To != nil {
		if name := b.renamed[r.To]; name != "" {
			return name
		}
	}
	if (r.Module != "" || r.Loaded != "") && r.To == nil {
		if o, ok := b.followImport(r); ok && o.To != nil {
			if name := b.renamed[o.To]; name != "" && (b.enums[name] != nil) == r.Enum {
				return name
			}
		}
	}
	if r.Full != "" {
		full := strings.TrimPrefix(r.Full, ".")
		if b.messages[full] != nil || b.enums[full] != nil || b.elsewhere(full) {
			return full
		}
		if r.Local == "" {
			return ""
		}
	}
	return b.byName(r)
}

// elsewhere reports whether a type is defined by a descriptor embedded in the scripts, or ships with protobuf.
func (b *builder) elsewhere(full string) bool {
	return b.outside[full] || protoname.IsStandard(full)
}

// An outsider is a type that is defined by a descriptor embedded in a script.
type outsider struct {
	// full is the full name of the type, and script the path of the script with the descriptor.
	full, script string
	// enum is set if the type is an enum; otherwise it is a message.
	enum bool
}

// indexOutside collects the types defined by descriptors that are embedded in the scripts.
func (b *builder) indexOutside() {
	var walk func(script, pkg string, inside int, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto)
	enter := func(script, full string, inside int, enum bool) {
		b.outside[full] = true
		parts := strings.Split(full, ".")
		// Scripts call a nested type Outer_Inner.
		word := strings.Join(parts[max(len(parts)-1-inside, 0):], "_")
		b.outsiders[word] = append(b.outsiders[word], outsider{full, script, enum})
	}
	walk = func(script, scope string, inside int, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto) {
		for _, m := range messages {
			full := protoname.Join(scope, m.GetName())
			enter(script, full, inside, false)
			walk(script, full, inside+1, m.NestedType, m.EnumType)
		}
		for _, e := range enums {
			enter(script, protoname.Join(scope, e.GetName()), inside, true)
		}
	}
	for i, f := range b.Definitions.Files {
		walk(b.Definitions.From[i], f.GetPackage(), 0, f.MessageType, f.EnumType)
	}
}

// byName resolves a reference by the type's name in the script, such as Foo or Outer_Inner. Bundlers may have
// added a suffix to distinguish equal names: Foo2, Foo$1.
func (b *builder) byName(r *Ref) string {
	word := r.Local
	// The word is imported from the runtime.
	if r.Module != "" && !strings.HasPrefix(r.Module, ".") && protoname.IsWellKnown(word) {
		return "google.protobuf." + word
	}
	// First the word itself, then without the suffix that a bundler added.
	for range 2 {
		name, several := b.nearest(r, word)
		if name != "" || several {
			return name
		}
		if protoname.IsWellKnown(word) {
			return "google.protobuf." + word
		}
		word = strings.TrimRight(word, "0123456789")
		word = strings.TrimSuffix(strings.TrimSuffix(word, "$"), "_")
	}
	return ""
}

// nearest returns the type to which the name word refers: in the imported module, else in the same file, else
// in any file. several is set if that is ambiguous.
func (b *builder) nearest(r *Ref, word string) (name string, several bool) {
	from := ""
	if strings.HasPrefix(r.Module, ".") {
		from = path.Join(path.Dir(r.Place.File), r.Module)
	}

	// The places to search, nearest first: the imported module, the same file, all files.
	for _, fits := range []func(file string) bool{
		func(file string) bool { return from != "" && isModule(file, from) },
		func(file string) bool { return from == "" && file == r.Place.File },
		func(string) bool { return true },
	} {
		for _, d := range b.locals[word] {
			full := b.renamed[d]
			if full == "" || (b.enums[full] != nil) != r.Enum || !fits(d.Place.File) {
				continue
			}
			// Two different types with this name: the reference is ambiguous.
			if name != "" && name != full {
				return "", true
			}
			name = full
		}
		for _, o := range b.outsiders[word] {
			if o.enum != r.Enum || !fits(o.script) {
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

// isModule reports whether file is the script that is imported with the path module, which may lack the
// extension or "/index".
func isModule(file, module string) bool {
	rest, ok := strings.CutPrefix(file, module)
	switch strings.TrimPrefix(rest, "/index") {
	case "", ".js", ".mjs", ".cjs":
		return ok
	}
	return false
}

// enumDefault sets the default value of an enum field in its descriptor fd. The script has it as a number or as
// a name.
func (b *builder) enumDefault(element string, f *Field, fd *descriptorpb.FieldDescriptorProto) {
	e := b.enums[strings.TrimPrefix(fd.GetTypeName(), ".")]
	if e != nil {
		for _, v := range e.Values {
			if fmt.Sprint(v.Number) == f.ValueRef || v.Name == f.ValueRef || strings.HasSuffix(v.Name, "_"+f.ValueRef) {
				fd.DefaultValue = proto.String(v.Name)
				return
			}
		}
	}
	b.unresolved(element, f.Place, "its default is not a value of its enum")
}

// buildServices builds the descriptors of all services.
func (b *builder) buildServices() {
	by := map[string][]*Service{}
	for _, s := range b.Definitions.Services {
		if full, ok := b.named(&s.Def); ok {
			by[full] = append(by[full], s)
		}
	}
	for _, full := range slices.Sorted(maps.Keys(by)) {
		c := choice.Of(b.ctx, by[full], b.coversService)
		if len(c.Dropped) > 0 {
			b.dropShapes(full, c.Dropped[0].Place, len(c.Dropped))
		}
		for i, s := range c.Kept {
			name := full
			// The later ones contradict the first, so they are kept under other names.
			if i > 0 {
				name = fmt.Sprintf("%s_%d", full, i+1)
				b.notes[name] = "Another shape of " + full + " in the same source."
				b.unresolved(full, s.Place, "another definition with this name has other fields, so extract named this one "+name)
			}
			f := b.file(name, b.packageSyntax(name))
			f.Service = append(f.Service, b.service(name, s))
		}
	}
}

// coversService reports whether the service x declares everything that y declares.
func (b *builder) coversService(x, y *Service) bool {
	for _, n := range y.Methods {
		i := slices.IndexFunc(x.Methods, func(m *Method) bool { return m.Name == n.Name })
		if i < 0 {
			return false
		}
		m := x.Methods[i]
		// A copy that does not show the streaming kind contradicts nothing.
		stream := m.Client == n.Client && m.Server == n.Server && !m.Unknown || n.Unknown
		if !stream || n.Idempotency != 0 && m.Idempotency != n.Idempotency {
			return false
		}
		if in, out := b.resolve(n.In), b.resolve(n.Out); in != "" && in != b.resolve(m.In) || out != "" && out != b.resolve(m.Out) {
			return false
		}
	}
	return true
}

// packageSyntax returns the syntax used by the other definitions in the package of the service full.
func (b *builder) packageSyntax(full string) string {
	if b.files[protoname.Package(full)+" proto3"] == nil && b.files[protoname.Package(full)+" proto2"] != nil {
		return "proto2"
	}
	return "proto3"
}

// service builds the descriptor of the service with the given full name.
func (b *builder) service(full string, s *Service) *descriptorpb.ServiceDescriptorProto {
	sd := &descriptorpb.ServiceDescriptorProto{Name: proto.String(protoname.Base(full))}
	names := map[string]bool{}
	for _, m := range s.Methods {
		element := full + "." + m.Name
		// Unusable methods are reported, so that the rest of the service can be kept.
		if !protoname.Valid(m.Name) || names[m.Name] {
			b.unresolved(element, s.Place, "its name is not valid in protobuf or occurs twice, so extract left it out")
			continue
		}
		names[m.Name] = true
		md := &descriptorpb.MethodDescriptorProto{Name: proto.String(m.Name)}
		if m.Unknown {
			b.unresolved(element, s.Place, "the code generated by this version of protobufjs does not reveal whether the method streams, so extract declared it as unary")
		}
		md.InputType = b.payload(element, "request", m.In)
		md.OutputType = b.payload(element, "response", m.Out)
		if m.Client {
			md.ClientStreaming = proto.Bool(true)
		}
		if m.Server {
			md.ServerStreaming = proto.Bool(true)
		}
		if m.Idempotency != 0 {
			md.Options = &descriptorpb.MethodOptions{IdempotencyLevel: m.Idempotency.Enum()}
		}
		sd.Method = append(sd.Method, md)
	}

	return sd
}

// payload returns the full name of a method's request or response type. If the type is missing, it is
// google.protobuf.Empty, because that keeps all fields as unknown fields. what is "request" or "response".
func (b *builder) payload(element, what string, r *Ref) *string {
	name := b.resolve(r)
	if name == "" || b.enums[name] != nil {
		word := r.Local
		if r.Full != "" {
			word = r.Full
		}
		b.notes[element] = strings.TrimSpace(b.notes[element] + fmt.Sprintf(" The type of its %s was not found; google.protobuf.Empty is used instead.", what))
		b.unresolved(element, r.Place, fmt.Sprintf("the type of its %s, %s, was not found, so extract used google.protobuf.Empty instead", what, word))
		name = "google.protobuf.Empty"
	}
	return proto.String("." + name)
}
