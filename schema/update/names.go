package update

import (
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// renamePlaceholders replaces placeholder names, such as field_3, in the user's files by the names in the
// source, including all references to them.
func (m *updatePass) renamePlaceholders() error {
	// types has the new simple names by the full names of types.
	types := map[protoreflect.FullName]string{}
	for w := range m.src.Schema.Messages() {
		h := m.have.Message(string(m.pairs[w.FullName()]))
		if h == nil {
			continue
		}
		m.typeName(types, w, h)
		m.fieldNames(w, h)
	}
	for w := range m.src.Schema.Enums() {
		h := m.enums[m.pairs[w.FullName()]]
		if h == nil {
			continue
		}
		m.typeName(types, w, h)
		m.valueNames(w, h)
	}
	if len(types) > 0 {
		m.renameTypes(types)
	}
	return nil
}

// takesName reports whether the name of w in the source is to replace the name of h in the user's files. It
// records the rename, or the conflict that prevents it. placeholder matches invented names.
func (m *updatePass) takesName(w, h protoreflect.Descriptor, number int32, placeholder *regexp.Regexp) bool {
	now, old := string(w.Name()), string(h.Name())
	if now == old || placeholder.MatchString(now) {
		return false
	}

	// Two real names contradict each other: the user decides.
	if !placeholder.MatchString(old) && !m.o.TakeNames {
		m.addConflict(h, number, old, now, "the names differ; --take-names takes the name in the source")
		return false
	}

	full := h.FullName().Parent().Append(protoreflect.Name(now))
	if m.usedNames[full] {
		m.addConflict(h, number, old, now, "another element has this name")
		return false
	}

	m.usedNames[full] = true
	m.addChange(Change{Op: opRename, Element: elementName(h), Kind: kindOf(h), Number: number, Old: old, New: now, File: h.ParentFile().Path()})
	renamed := strings.TrimSuffix(elementName(h), old) + now
	m.log.rename(elementName(h), renamed)
	if placeholder.MatchString(old) {
		m.renamed[renamed] = true
	}
	m.log.confirm(renamed, kindOf(h), number, m.src, "")
	return true
}

// typeName adds the type h to types, with its new name, if the source has another name for it.
func (m *updatePass) typeName(types map[protoreflect.FullName]string, w, h protoreflect.Descriptor) {
	if m.src.Guessed || w.FullName() == h.FullName() || w.Name() == h.Name() {
		return
	}
	if _, in := m.blockAndGroup(h); in {
		// The name of a group is that of its field.
		return
	}
	if m.takesName(w, h, 0, placeholderType()) {
		types[h.FullName()] = string(w.Name())
	}
}

// blockAndGroup returns the text of a message or enum, and whether it is a group.
func (m *updatePass) blockAndGroup(h protoreflect.Descriptor) (*block, bool) {
	b := m.blockOf(h)
	if b == nil {
		return nil, true
	}
	return b, !strings.HasPrefix(b.doc.text[b.start:], "message") && !strings.HasPrefix(b.doc.text[b.start:], "enum")
}

// fieldNames renames the fields and oneofs of the message h in the user's files to the names in w, its
// counterpart in the source.
func (m *updatePass) fieldNames(w, h protoreflect.MessageDescriptor) {
	for i := range w.Fields().Len() {
		wf := w.Fields().Get(i)
		hf := h.Fields().ByNumber(wf.Number())
		if hf == nil || wf.Name() == hf.Name() || !sameWire(wf, hf) || hf.Kind() == protoreflect.GroupKind {
			continue
		}
		// The source has the JSON name only, so it says nothing about the spelling.
		if m.src.Spelled && wf.JSONName() == hf.JSONName() {
			continue
		}
		if json := byJSONName(h, wf); json != nil && json != hf {
			if !placeholderField().MatchString(string(wf.Name())) {
				m.addConflict(hf, int32(hf.Number()), string(hf.Name()), string(wf.Name()), "the name belongs to field "+itoa(int(json.Number())))
			}
			continue
		}
		if !m.takesName(wf, hf, int32(hf.Number()), placeholderField()) {
			continue
		}
		if b := m.blockOf(h); b != nil {
			if dd := b.find(fieldDecl, int(hf.Number()), ""); dd != nil {
				b.doc.replace(dd.name, string(wf.Name()))
			}
		}
	}

	for i := range w.Oneofs().Len() {
		m.oneofName(w.Oneofs().Get(i), h)
	}
}

// oneofName renames the oneof of the message h that has members of the source's oneof w.
func (m *updatePass) oneofName(w protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor) {
	if w.IsSynthetic() || h.Oneofs().ByName(w.Name()) != nil || m.src.Guessed {
		return
	}
	o := memberOneof(w, h)
	if o == nil || !m.takesName(w, o, 0, placeholderOneof()) {
		return
	}
	if b := m.blockOf(o); b != nil {
		b.doc.replace(b.name, string(w.Name()))
	}
}

// memberOneof returns the oneof of the message h that contains a member of w, or nil.
func memberOneof(w protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor) protoreflect.OneofDescriptor {
	for i := range w.Fields().Len() {
		if hf := h.Fields().ByNumber(w.Fields().Get(i).Number()); hf != nil {
			if o := hf.ContainingOneof(); o != nil && !o.IsSynthetic() {
				return o
			}
		}
	}
	return nil
}

// byJSONName returns the field of the message h whose name would clash with w: it has the same name or JSON
// name, or differs only in case and underscores. It returns nil if there is none.
func byJSONName(h protoreflect.MessageDescriptor, w protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if f := h.Fields().ByName(w.Name()); f != nil {
		return f
	}
	fold := strings.ToLower(strings.ReplaceAll(string(w.Name()), "_", ""))
	for i := range h.Fields().Len() {
		f := h.Fields().Get(i)
		if f.JSONName() == w.JSONName() || strings.ToLower(strings.ReplaceAll(string(f.Name()), "_", "")) == fold {
			return f
		}
	}
	return nil
}

// valueNames renames the values of the enum h in the user's files to the names in w, its counterpart in the
// source.
func (m *updatePass) valueNames(w, h protoreflect.EnumDescriptor) {
	for i := range w.Values().Len() {
		wv := w.Values().Get(i)
		hv := h.Values().ByNumber(wv.Number())
		if hv == nil || h.Values().ByName(wv.Name()) != nil || hasAlias(w, wv.Number(), hv.Name()) {
			continue
		}
		if !m.takesName(wv, hv, int32(wv.Number()), placeholderValue()) {
			continue
		}
		if b := m.blockOf(h); b != nil {
			if dd := b.find(valueDecl, 0, elementName(hv)); dd != nil {
				b.doc.replace(dd.name, string(wv.Name()))
				m.renameDefaults(h, string(hv.Name()), string(wv.Name()))
			}
		}
	}
}

// renameDefaults renames a value of the enum e in the default values of fields.
func (m *updatePass) renameDefaults(e protoreflect.EnumDescriptor, old, now string) {
	m.eachFieldNode(func(d *document, fd protoreflect.FieldDescriptor, n ast.Node) {
		f, ok := n.(*ast.FieldNode)
		if !ok || f.Options == nil || fd.Enum() == nil || fd.Enum().FullName() != e.FullName() {
			return
		}
		for _, o := range f.Options.Options {
			if len(o.Name.Parts) == 1 && o.Name.Parts[0].Value() == "default" {
				if v, ok := o.Val.(*ast.IdentNode); ok && v.Val == old {
					d.replace(d.spanOf(v), now)
				}
			}
		}
	})
}

// hasAlias reports whether name is one of the names for the number n in the enum e.
func hasAlias(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber, name protoreflect.Name) bool {
	v := e.Values().ByName(name)
	return v != nil && v.Number() == n
}

// renameTypes renames the declarations of types and all references to them. types maps full names to new simple
// names.
func (m *updatePass) renameTypes(types map[protoreflect.FullName]string) {
	// The declarations themselves.
	for full, now := range types {
		var d protoreflect.Descriptor = m.enums[full]
		if h := m.have.Message(string(full)); h != nil {
			d = h
		}
		if b := m.blockOf(d); b != nil {
			b.doc.replace(b.name, now)
		}
	}

	// A reference may be partly qualified. Each part of it that names a renamed type is replaced.
	m.eachRef(func(d *document, ident ast.IdentValueNode, target protoreflect.FullName) {
		parts := []*ast.IdentNode{}
		switch n := ident.(type) {
		case *ast.IdentNode:
			parts = append(parts, n)
		case *ast.CompoundIdentNode:
			parts = n.Components
		}
		all := strings.Split(string(target), ".")
		scope := protoreflect.FullName("")
		for i, name := range all {
			scope = protoreflect.FullName(join(string(scope), name))
			now, renamed := types[scope]
			if at := i - (len(all) - len(parts)); renamed && at >= 0 {
				d.replace(d.spanOf(parts[at]), now)
			}
		}
	})
}

// eachFieldNode calls yield with each field and extension and its syntax node.
func (m *updatePass) eachFieldNode(yield func(*document, protoreflect.FieldDescriptor, ast.Node)) {
	for _, f := range m.have.Files {
		d := m.document(f.Path())
		if d == nil {
			continue
		}
		for i := range f.Extensions().Len() {
			m.extensionNode(d, d.root, f.Extensions().Get(i), yield)
		}
		m.messageFields(d, f.Messages(), yield)
	}
}

// messageFields calls yield with the fields of messages, including nested ones, and their syntax nodes.
func (m *updatePass) messageFields(d *document, list protoreflect.MessageDescriptors, yield func(*document, protoreflect.FieldDescriptor, ast.Node)) {
	for i := range list.Len() {
		md := list.Get(i)
		b := d.blocks[string(md.FullName())]
		if b == nil {
			// Map entries have no block.
			continue
		}
		for j := range md.Fields().Len() {
			if dd := b.find(fieldDecl, int(md.Fields().Get(j).Number()), ""); dd != nil {
				yield(d, md.Fields().Get(j), dd.node)
			}
		}
		for j := range md.Extensions().Len() {
			m.extensionNode(d, b, md.Extensions().Get(j), yield)
		}
		m.messageFields(d, md.Messages(), yield)
	}
}

// extensionNode calls yield with an extension and its syntax node. b is the block that declares it.
func (m *updatePass) extensionNode(d *document, b *block, x protoreflect.FieldDescriptor, yield func(*document, protoreflect.FieldDescriptor, ast.Node)) {
	for _, dd := range b.decls {
		e, ok := dd.node.(*ast.ExtendNode)
		if !ok {
			continue
		}
		for _, n := range e.Decls {
			if f, ok := n.(*ast.FieldNode); ok && f.Name.Val == string(x.Name()) {
				yield(d, x, f)
			}
		}
	}
}

// eachRef calls yield with each reference to a type (in fields, extensions and methods): its syntax node and
// the full name of the type.
func (m *updatePass) eachRef(yield func(*document, ast.IdentValueNode, protoreflect.FullName)) {
	extendees := map[*ast.ExtendNode]bool{}
	m.eachFieldNode(func(d *document, fd protoreflect.FieldDescriptor, n ast.Node) {
		// An extension refers to the type that it extends, in addition to its own type.
		ident, elem := ast.IdentValueNode(nil), fd
		switch n := n.(type) {
		case *ast.FieldNode:
			ident = n.FldType

			// All fields of an extend block share one extendee, which is reported once.
			if n.Extendee != nil && !extendees[n.Extendee] {
				extendees[n.Extendee] = true
				yield(d, n.Extendee.Extendee, fd.ContainingMessage().FullName())
			}
		case *ast.MapFieldNode:
			ident, elem = n.MapType.ValueType, fd.MapValue()
		default:
			return
		}
		switch {
		case elem.Message() != nil:
			yield(d, ident, elem.Message().FullName())
		case elem.Enum() != nil:
			yield(d, ident, elem.Enum().FullName())
		}
	})

	// Methods refer to types as well.
	for sd := range m.have.Services() {
		b := m.blockOf(sd)
		if b == nil {
			continue
		}
		for i := range sd.Methods().Len() {
			h := sd.Methods().Get(i)
			if dd := b.find(methodDecl, 0, string(h.FullName())); dd != nil {
				r := dd.node.(*ast.RPCNode)
				yield(b.doc, r.Input.MessageType, h.Input().FullName())
				yield(b.doc, r.Output.MessageType, h.Output().FullName())
			}
		}
	}
}
