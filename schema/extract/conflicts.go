package extract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// dropBroken removes declarations that no protobuf runtime accepts, so that the others still link. It reports
// whether there were any.
func (m *merger) dropBroken() bool {
	kept := m.elements[:0]
	n := len(m.elements)

	// Each declaration is linked alone, which shows whether it is the broken one.
	for _, e := range m.elements {
		f := m.file("alone.proto", outputFile{e.pkg, e.syntax, 0}, []*element{e})
		if _, err := (protodesc.FileOptions{AllowUnresolvable: true}).New(f, &protoregistry.Files{}); err != nil {
			m.addUnresolved(e.full(), "", "it is not valid, so extract left it out: "+err.Error())
			continue
		}
		kept = append(kept, e)
	}
	m.elements = kept
	return len(kept) < n
}

// dropClashing removes declarations with a name that another declaration has. It reports whether there were
// any.
func (m *merger) dropClashing() bool {
	taken := maps.Clone(m.packages)
	kept := m.elements[:0]
	n := len(m.elements)
	for _, e := range m.elements {
		names := namesOf(e)
		// The first declaration keeps the name.
		i := slices.IndexFunc(names, func(name string) bool { return taken[name] })
		if i >= 0 {
			m.addUnresolved(e.full(), "", "another declaration has the name "+names[i]+", so extract left this one out")
			continue
		}
		for _, name := range names {
			taken[name] = true
		}
		kept = append(kept, e)
	}
	m.elements = kept
	return len(kept) < n
}

// namesOf returns the full names of a declaration and of everything declared inside it.
func namesOf(e *element) []string {
	var names []string
	var message func(full string, d *descriptorpb.DescriptorProto)

	// The values of an enum are names in the scope around it.
	enum := func(scope string, d *descriptorpb.EnumDescriptorProto) {
		names = append(names, join(scope, d.GetName()))
		for _, v := range d.Value {
			names = append(names, join(scope, v.GetName()))
		}
	}
	message = func(full string, d *descriptorpb.DescriptorProto) {
		names = append(names, full)
		for _, f := range d.Field {
			names = append(names, join(full, f.GetName()))
		}
		for _, f := range d.Extension {
			names = append(names, join(full, f.GetName()))
		}
		for _, o := range d.OneofDecl {
			names = append(names, join(full, o.GetName()))
		}
		for _, n := range d.NestedType {
			message(join(full, n.GetName()), n)
		}
		for _, n := range d.EnumType {
			enum(full, n)
		}
	}
	switch d := e.msg.(type) {
	case *descriptorpb.DescriptorProto:
		message(e.full(), d)
	case *descriptorpb.EnumDescriptorProto:
		enum(e.pkg, d)
	default:
		names = append(names, e.full())
	}
	return names
}

// resolve replaces references to types that are not declared anywhere by types with the same encoding.
func (m *merger) resolve() {
	types := map[string]bool{}
	for _, e := range m.elements {
		typesIn(e, func(full string) { types["."+full] = true })
	}
	for name := range m.standardTypes {
		types["."+name] = true
	}

	known := func(name string) bool { return types[name] }
	closed := m.closedEnums()
	kept := m.elements[:0]

	// A missing type is replaced by one with the same encoding, so that the rest of the declaration survives.
	for _, e := range m.elements {
		drop := false
		eachType(e.msg, func(path string, name **string, f *descriptorpb.FieldDescriptorProto) {
			// All references are made absolute, so that they can be compared.
			if !strings.HasPrefix(**name, ".") {
				*name = proto.String("." + **name)
			}
			full := join(e.full(), path)
			// proto3 messages cannot refer to closed enums.
			if known(**name) && f != nil && closed[**name] && e.syntax.name == "proto3" {
				m.addUnresolved(full, "", "its type "+(**name)[1:]+" is an enum of proto2, which proto3 cannot use, so extract declared it as int32")
				m.notes[full] = fmt.Sprintf("Its type is %s; int32 has the same wire format.", (**name)[1:])
				replaceType(f)
				*name = nil
				return
			}
			if known(**name) {
				return
			}
			switch _, isService := e.msg.(*descriptorpb.ServiceDescriptorProto); {
			case isService:
				m.notes[full] = strings.TrimSpace(m.notes[full] + fmt.Sprintf(" The type %s was not found; google.protobuf.Empty is used instead.", (**name)[1:]))
				m.addUnresolved(full, "", "the type "+(**name)[1:]+" was not found, so extract used google.protobuf.Empty instead")
				*name = proto.String(".google.protobuf.Empty")
			// This is the message that an extension extends.
			case f == nil:
				drop = true
				m.addUnresolved(full, "", "the message that it extends, "+(**name)[1:]+", was not found, so extract left this one out")
			default:
				replaceType(f)
				m.notes[full] = fmt.Sprintf("Its type, %s, was not found; %s has the same wire format.", (**name)[1:], strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_")))
				m.addUnresolved(full, "", "its type "+(**name)[1:]+" was not found, so extract declared it as "+strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_")))
				*name = nil
			}
		})
		if !drop {
			kept = append(kept, e)
		}
	}

	m.elements = kept
	m.openRanges()
	m.renameClashingValues()
}

// closedEnums returns the full names, with a leading dot, of all proto2 enums, which proto3 messages cannot
// use.
func (m *merger) closedEnums() map[string]bool {
	closed := map[string]bool{}
	var walk func(full string, d *descriptorpb.DescriptorProto)
	walk = func(full string, d *descriptorpb.DescriptorProto) {
		for _, e := range d.EnumType {
			closed[full+"."+e.GetName()] = true
		}
		for _, n := range d.NestedType {
			walk(full+"."+n.GetName(), n)
		}
	}
	for _, e := range m.elements {
		if e.syntax.name != "proto2" {
			continue
		}
		switch d := e.msg.(type) {
		case *descriptorpb.EnumDescriptorProto:
			closed["."+e.full()] = true
		case *descriptorpb.DescriptorProto:
			walk("."+e.full(), d)
		}
	}
	return closed
}

// openRanges declares extension ranges for the extensions that were found, because the output of code
// generators does not show which numbers are reserved for extensions.
func (m *merger) openRanges() {
	// The messages that can be extended, by full name with a leading dot.
	messages := map[string]*descriptorpb.DescriptorProto{}
	var walk func(full string, d *descriptorpb.DescriptorProto)
	walk = func(full string, d *descriptorpb.DescriptorProto) {
		messages[full] = d
		for _, n := range d.NestedType {
			walk(full+"."+n.GetName(), n)
		}
	}
	for _, e := range m.elements {
		if d, ok := e.msg.(*descriptorpb.DescriptorProto); ok {
			walk("."+e.full(), d)
		}
	}

	numbers := map[string][]int32{}
	for _, e := range m.elements {
		extensionsIn(e.msg, func(x *descriptorpb.FieldDescriptorProto) {
			numbers[x.GetExtendee()] = append(numbers[x.GetExtendee()], x.GetNumber())
		})
	}

	for name, list := range numbers {
		d := messages[name]
		if d == nil {
			continue
		}
		// Adjacent numbers share a range.
		slices.Sort(list)
		for _, n := range list {
			// The number is in a range already, extends the last one, or begins a new one.
			switch i := len(d.ExtensionRange) - 1; {
			case slices.ContainsFunc(d.ExtensionRange, func(r *descriptorpb.DescriptorProto_ExtensionRange) bool {
				return r.GetStart() <= n && n < r.GetEnd()
			}):
			case i >= 0 && d.ExtensionRange[i].GetEnd() == n && d.ExtensionRange[i].Options == nil:
				d.ExtensionRange[i].End = proto.Int32(n + 1)
			default:
				d.ExtensionRange = append(d.ExtensionRange, &descriptorpb.DescriptorProto_ExtensionRange{Start: proto.Int32(n), End: proto.Int32(n + 1)})
			}
		}
	}
}

// renameClashingValues renames enum values that have the same name as another declaration in their
// scope. Such clashes occur because some code generators strip the name of the enum from the names of
// its values.
func (m *merger) renameClashingValues() {
	// Names that values of top-level enums must not have.
	taken := standardValues()
	maps.Copy(taken, m.packages)
	for _, e := range m.elements {
		taken[e.full()] = true
	}
	for _, e := range m.elements {
		switch d := e.msg.(type) {
		case *descriptorpb.EnumDescriptorProto:
			m.renameClashing(e.pkg, d, taken)
		case *descriptorpb.DescriptorProto:
			m.renameClashingIn(e.full(), d)
		}
	}
}

// renameClashingIn is renameClashingValues for the enums inside a message.
func (m *merger) renameClashingIn(full string, d *descriptorpb.DescriptorProto) {
	taken := map[string]bool{}
	for _, f := range d.Field {
		taken[join(full, f.GetName())] = true
	}
	for _, f := range d.OneofDecl {
		taken[join(full, f.GetName())] = true
	}
	for _, n := range d.NestedType {
		taken[join(full, n.GetName())] = true
		m.renameClashingIn(join(full, n.GetName()), n)
	}
	for _, e := range d.EnumType {
		taken[join(full, e.GetName())] = true
	}
	for _, e := range d.EnumType {
		m.renameClashing(full, e, taken)
	}
}

// renameClashing renames the clashing values of one enum. taken has the names in use in the enum's scope.
func (m *merger) renameClashing(scope string, d *descriptorpb.EnumDescriptorProto, taken map[string]bool) {
	for _, v := range d.Value {
		name := v.GetName()
		// The name of the enum is the prefix that code generators strip.
		for n := 1; taken[join(scope, name)]; n++ {
			name = d.GetName() + "_" + v.GetName()
			if n > 1 {
				name = fmt.Sprintf("%s_%d", name, n)
			}
		}
		taken[join(scope, name)] = true
		if name != v.GetName() {
			m.addUnresolved(join(scope, d.GetName()), "", "its value "+v.GetName()+" has the same name as another declaration in this scope, so extract declared it as "+name)
			v.Name = &name
		}
	}
}
