package extract

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

// symbols are the full names of all that a set declares, packages among it: what
// a name in a .proto file may stand for.
type symbols map[string]bool

// symbolsOf returns the names that files declare.
func symbolsOf(lists ...[]*descriptorpb.FileDescriptorProto) symbols {
	s := symbols{}
	for _, files := range lists {
		for _, f := range files {
			pkg := f.GetPackage()
			for p := pkg; p != ""; p = parentOf(p) {
				s[p] = true
			}
			for _, m := range f.MessageType {
				s.message(join(pkg, m.GetName()), m)
			}
			for _, e := range f.EnumType {
				s.enum(pkg, e)
			}
			for _, x := range f.Extension {
				s[join(pkg, x.GetName())] = true
			}
			for _, svc := range f.Service {
				s[join(pkg, svc.GetName())] = true
				for _, m := range svc.Method {
					s[join(join(pkg, svc.GetName()), m.GetName())] = true
				}
			}
		}
	}
	return s
}

func (s symbols) message(full string, m *descriptorpb.DescriptorProto) {
	s[full] = true
	for _, list := range [][]*descriptorpb.FieldDescriptorProto{m.Field, m.Extension} {
		for _, f := range list {
			s[full+"."+f.GetName()] = true
		}
	}
	for _, o := range m.OneofDecl {
		s[full+"."+o.GetName()] = true
	}
	for _, e := range m.EnumType {
		s.enum(full, e)
	}
	for _, n := range m.NestedType {
		s.message(full+"."+n.GetName(), n)
	}
}

func (s symbols) enum(scope string, e *descriptorpb.EnumDescriptorProto) {
	s[join(scope, e.GetName())] = true
	for _, v := range e.Value { // they stand beside their enum
		s[join(scope, v.GetName())] = true
	}
}

// reference returns how a type, as .pkg.Type, is written within a scope of a
// package: without what the scope tells where it is in the package, else in
// full; and with the dot in front where anything else has the name's beginning.
func (s symbols) reference(pkg, scope, typ string) string {
	full, ok := strings.CutPrefix(typ, ".")
	if !ok {
		return typ
	}
	usable := func(name string) bool { return s.resolve(scope, name) == full && !isKeyword(name) }
	for outer := scope; len(outer) >= len(pkg) && outer != ""; outer = parentOf(outer) {
		if name, ok := strings.CutPrefix(full, outer+"."); ok && usable(name) {
			return name
		}
	}
	if usable(full) {
		return full
	}
	return typ
}

// resolve returns what compilers take a name within a scope for: they look for
// its first word from the inside to the outside, and nowhere else for the rest.
// Where they would go on, as what they found is no type, it is as if they did not.
func (s symbols) resolve(scope, name string) string {
	first, _, _ := strings.Cut(name, ".")
	for ; ; scope = parentOf(scope) {
		if s[join(scope, first)] {
			return join(scope, name)
		}
		if scope == "" {
			return ""
		}
	}
}

// isKeyword says whether a name begins with a word that means something else
// where a type's name is expected.
func isKeyword(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	switch first {
	case "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
		"group", "map", "stream", "optional", "repeated", "required", "oneof", "message", "enum", "extend", "extensions", "reserved", "option", "service", "rpc",
		"returns", "export", "local", "package", "import", "syntax", "edition":
		return true
	}
	return false
}

// parentOf returns a full name without its last word.
func parentOf(full string) string {
	return full[:max(strings.LastIndexByte(full, '.'), 0)]
}
