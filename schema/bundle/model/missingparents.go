package model

import (
	"maps"
	"slices"
	"strings"

	"unwire/schema/bundle/protoname"
)

// declareParents declares messages that scripts mention only as parents of nested types. A bundler drops a
// message that nothing uses but keeps the types nested in it, because code generators write Parent.Child as a
// separate class. Without its parent, the child would be in a package with the parent's name.
func (b *builder) declareParents() {
	packages := b.packages()
	full := append(slices.Sorted(maps.Keys(b.messages)), slices.Sorted(maps.Keys(b.enums))...)
	for _, name := range full {
		d := b.definition(name)
		depth := nesting(d)
		for parent := protoname.Package(name); parent != ""; parent = protoname.Package(parent) {
			if b.messages[parent] != nil || b.enums[parent] != nil || packages[parent] || protoname.IsStandard(parent) {
				break
			}
			if depth == 0 || depth < 0 && !isMessageName(d.Form, parent) {
				break
			}
			b.messages[parent] = &Message{Def: Def{Full: parent, Syntax: d.Syntax, Form: d.Form, Place: d.Place}}
			b.notes[parent] = "The source contains only types that are nested in it."
			b.unresolved(parent, d.Place, "the source contains only types nested in it, so extract declared it without fields")
			depth--
		}
	}
}

// definition returns the definition of the message or enum with the given full name.
func (b *builder) definition(full string) *Def {
	if m := b.messages[full]; m != nil {
		return &m.Def
	}
	return &b.enums[full].Def
}

// packages returns the names that are known to be packages and not messages: those of services, of embedded
// descriptors, and of types that are not nested according to their name in the script.
func (b *builder) packages() map[string]bool {
	out := map[string]bool{}
	add := func(pkg string) {
		for ; pkg != "" && !out[pkg]; pkg = protoname.Package(pkg) {
			out[pkg] = true
		}
	}
	for _, s := range b.Definitions.Services {
		add(protoname.Package(strings.TrimPrefix(s.Full, ".")))
	}
	for _, f := range b.Definitions.Files {
		add(f.GetPackage())
	}
	for full, m := range b.messages {
		if nesting(&m.Def) == 0 {
			add(protoname.Package(full))
		}
	}
	return out
}

// nesting returns the number of messages that enclose a type, according to its name in the script: Outer_Inner
// for Outer.Inner. It returns -1 if that name is unknown.
func nesting(d *Def) int {
	if d.Local == "" {
		return -1
	}
	parts := strings.Split(strings.TrimPrefix(d.Full, "."), ".")
	for depth := range parts {
		if strings.Join(parts[len(parts)-1-depth:], "_") == d.Local {
			return depth
		}
	}
	return -1
}

// isMessageName reports whether full, the parent of a type such as a.v1.Parent, is probably a message and not a
// package. form is the code generator; protobufjs distinguishes packages from messages, so no guess is made for
// it.
func isMessageName(form, full string) bool {
	if form == FormPBJS || form == FormReflection {
		return false
	}
	isCapital := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	base := protoname.Base(full)
	return isCapital(base[0]) && strings.ToUpper(base) != base && base != full && !isCapital(full[0])
}
