package extract

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

// symbols is the set of full names that files declare, including packages and their parents: everything that a
// name in a .proto file may refer to.
type symbols map[string]bool

// symbolsOf returns all full names that the files in the lists declare.
func symbolsOf(lists ...[]*descriptorpb.FileDescriptorProto) symbols {
	s := symbols{}
	for _, files := range lists {
		for _, f := range files {
			pkg := f.GetPackage()
			// Parents of a package are names too, and hide others.
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

// message adds the names declared in the message full, including itself.
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

// enum adds the names declared in an enum, including itself. scope is the full name of its parent.
func (s symbols) enum(scope string, e *descriptorpb.EnumDescriptorProto) {
	s[join(scope, e.GetName())] = true
	// Values belong to the scope around their enum.
	for _, v := range e.Value {
		s[join(scope, v.GetName())] = true
	}
}

// reference returns the shortest unambiguous reference to the type typ (a full name with a leading dot) from
// the scope with that full name in the package pkg. It keeps the leading dot if the name would otherwise
// resolve to another element.
func (s symbols) reference(pkg, scope, typ string) string {
	full, ok := strings.CutPrefix(typ, ".")
	if !ok {
		return typ
	}
	// A shorter name is used only if it resolves to the same type.
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

// resolve returns the full name that name refers to within a scope, or "". The rule of compilers is: they look
// up the first part of a name in the innermost scope that declares it, and the rest there only. Compilers
// continue if they find something that is not a type; this function does not, which is on the safe side.
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

// isKeyword reports whether a type name begins with a word, such as "optional", that a parser would read as a
// keyword before a field.
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

// parentOf returns a full name without its last part, or "".
func parentOf(full string) string {
	return full[:max(strings.LastIndexByte(full, '.'), 0)]
}
