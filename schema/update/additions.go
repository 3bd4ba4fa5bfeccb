package update

import (
	"slices"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/compare"
)

// addMissing adds the declarations of the source that the user's files lack. If the source is complete, it
// marks the declarations that only the files have.
func (m *updatePass) addMissing() error {
	m.placeTypes()
	for w := range m.src.Schema.Messages() {
		if h := m.have.Message(string(m.pairs[w.FullName()])); h != nil {
			m.message(w, h)
		}
	}
	for w := range m.src.Schema.Enums() {
		if h := m.enums[m.pairs[w.FullName()]]; h != nil {
			m.enum(w, h)
		}
	}
	// The order puts a type before the types inside it.
	for _, name := range m.order {
		m.addType(m.placed[name])
	}
	for w := range m.src.Schema.Services() {
		m.service(w)
	}

	// What is gone is marked last, because pairs and new types show what the source still has.
	if m.src.Complete {
		m.markGoneTypes()
	}
	return nil
}

// message compares the message w of the source with its counterpart h in the user's files, and adds what h
// lacks.
func (m *updatePass) message(w, h protoreflect.MessageDescriptor) {
	b := m.blockOf(h)
	if b == nil {
		return
	}
	newOneofs := map[protoreflect.Name]bool{}
	for i := range w.Fields().Len() {
		wf := w.Fields().Get(i)
		if hf := h.Fields().ByNumber(wf.Number()); hf != nil {
			m.field(wf, hf, b)
			continue
		}
		if o := wf.ContainingOneof(); o != nil && newOneofs[o.Name()] {
			// The whole oneof is written with the first of its members.
			continue
		}
		if reason := m.refusal(wf, h); reason != "" {
			m.addChange(Change{
				Op: Conflict, Element: string(h.FullName()) + "." + string(wf.Name()), Kind: compare.FieldElement, Number: int32(wf.Number()),
				New: describeField(wf), Note: reason, File: b.doc.name,
			})
			continue
		}
		m.addField(wf, h, b, newOneofs)
	}

	// Only a complete source shows that a field is gone; traffic lacks fields by chance.
	if m.src.Complete {
		for i := range h.Fields().Len() {
			if hf := h.Fields().Get(i); w.Fields().ByNumber(hf.Number()) == nil {
				m.markGone(hf, b.find(fieldDecl, int(hf.Number()), ""), b.doc, int32(hf.Number()))
			}
		}
	}
}

// refusal returns the reason why the field w of the source cannot be added to the message h, or "".
func (m *updatePass) refusal(w protoreflect.FieldDescriptor, h protoreflect.MessageDescriptor) string {
	switch {
	case h.ReservedRanges().Has(w.Number()):
		return "the number is reserved in your file"
	case h.ReservedNames().Has(w.Name()):
		return "the name is reserved in your file"
	case h.ExtensionRanges().Has(w.Number()):
		return "the number is in a range for extensions"
	}

	if f := byJSONName(h, w); f != nil {
		return "the name belongs to field " + itoa(int(f.Number()))
	}
	if m.usedNames[h.FullName().Append(w.Name())] {
		return "another element has this name"
	}
	if d := m.document(h.ParentFile().Path()); w.Kind() == protoreflect.GroupKind && d != nil && d.syntax != "editions" {
		return "unwire does not add groups"
	}
	return ""
}

// addField adds the field w of the source to the message h, whose text is the block b. newOneofs collects the
// oneofs that are added as a whole.
func (m *updatePass) addField(w protoreflect.FieldDescriptor, h protoreflect.MessageDescriptor, b *block, newOneofs map[protoreflect.Name]bool) {
	full := h.FullName().Append(w.Name())
	target := b

	// A member goes into the counterpart of its oneof. A oneof without one is added if none of its members
	// exists.
	if o := w.ContainingOneof(); o != nil && !o.IsSynthetic() {
		into := memberOneof(o, h)
		if into == nil {
			into = h.Oneofs().ByName(o.Name())
		}
		switch {
		case into != nil && !into.IsSynthetic():
			target = b.doc.blocks[string(into.FullName())]
		case !m.src.Guessed && m.newMembers(o, h) == o.Fields().Len() && !m.usedNames[h.FullName().Append(o.Name())]:
			newOneofs[o.Name()] = true
			m.addOneof(o, h, b)
			return
		}
	}
	if target == nil {
		return
	}

	// The text is inserted where the numbers of the other fields suggest.
	p := m.printer(b.doc, h.FullName(), target)
	text, ok := p.field(w, target != b)
	if !ok {
		return
	}
	m.usedNames[full] = true
	target.insert(addition{kind: fieldDecl, number: int(w.Number()), text: text})
	m.recordAdded(string(full), compare.FieldElement, int32(w.Number()), describeField(w), b.doc)
}

// newMembers returns how many members of the oneof o can be added to the message h.
func (m *updatePass) newMembers(o protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor) int {
	n := 0
	for i := range o.Fields().Len() {
		if f := o.Fields().Get(i); h.Fields().ByNumber(f.Number()) == nil && m.refusal(f, h) == "" {
			n++
		}
	}
	return n
}

// addOneof adds the oneof o of the source with all its members to the message h, whose text is the block b.
func (m *updatePass) addOneof(o protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor, b *block) {
	p := m.printer(b.doc, h.FullName(), b)
	text, least, ok := p.oneof(o)
	if !ok {
		return
	}
	m.usedNames[h.FullName().Append(o.Name())] = true
	b.insert(addition{kind: fieldDecl, number: least, text: text})
	for i := range o.Fields().Len() {
		f := o.Fields().Get(i)
		m.usedNames[h.FullName().Append(f.Name())] = true
		m.recordAdded(string(h.FullName().Append(f.Name())), compare.FieldElement, int32(f.Number()), describeField(f), b.doc)
	}
}

// recordAdded records an added element in the changes and in the evidence file. now is its declaration.
func (m *updatePass) recordAdded(element string, kind compare.ElementKind, number int32, now string, d *document) {
	m.addChange(Change{Op: opAdd, Element: element, Kind: kind, Number: number, New: now, File: d.name})
	m.log.confirm(element, kind, number, m.src, "")
}

// field compares the field w of the source with its counterpart h in the user's files. If they differ, it
// replaces the type or records a conflict. b is the text of the message.
func (m *updatePass) field(w, h protoreflect.FieldDescriptor, b *block) {
	dd := b.find(fieldDecl, int(h.Number()), "")
	if dd == nil {
		return
	}
	if !m.src.Guessed && schema.InOneof(w) && !schema.InOneof(h) {
		m.addConflict(h, int32(h.Number()), describeField(h), "oneof "+string(w.ContainingOneof().Name()), "unwire does not move a field into a oneof")
	}

	// What differs is either impossible together, a question for the user, or replaced.
	op, same := m.compare(w, h)
	if same {
		return
	}

	if !sameWire(w, h) {
		m.addConflict(h, int32(h.Number()), describeField(h), describeField(w), "the two types have different wire formats")
		return
	}
	if !m.replaces(w, h, b, dd) {
		if !m.src.Guessed {
			m.addConflict(h, int32(h.Number()), describeField(h), describeField(w), "the two types have the same wire format; --take-types takes the type in the source")
		}
		return
	}
	if schema.InOneof(h) && (w.IsList() || w.IsMap()) {
		m.addConflict(h, int32(h.Number()), describeField(h), describeField(w), "a oneof cannot contain repeated fields")
		return
	}

	// Only the label and the type are replaced: name, number and options stay as they are.
	p := m.printer(b.doc, h.ContainingMessage().FullName(), b)
	text, ok := p.typeOf(w, h.ContainingOneof() != nil && !h.ContainingOneof().IsSynthetic())
	if !ok {
		return
	}
	if _, plain := dd.node.(*ast.GroupNode); plain || w.Kind() == protoreflect.GroupKind {
		m.addConflict(h, int32(h.Number()), describeField(h), describeField(w), "unwire does not change groups")
		return
	}
	b.doc.replace(span{dd.start, dd.typ.end}, text)
	m.addChange(Change{Op: op, Element: string(h.FullName()), Kind: compare.FieldElement, Number: int32(h.Number()), Old: describeField(h), New: describeField(w), File: b.doc.name})
	m.log.confirm(string(h.FullName()), compare.FieldElement, int32(h.Number()), m.src, "")
}

// replaces reports whether the type of w is to replace the type of h: they differ, both can decode the same
// bytes, and the options permit it or the type of h is only a guess.
func (m *updatePass) replaces(w, h protoreflect.FieldDescriptor, b *block, dd *decl) bool {
	if _, same := m.compare(w, h); same || !sameWire(w, h) {
		return false
	}
	// A guess does not replace a type that the samples fit, unless the guess is more specific.
	if m.src.Guessed && !moreSpecific(w, h) && m.mayHaveType(w, h) {
		return false
	}
	return m.o.TakeTypes || m.renamed[string(h.FullName())] || placeholderField().MatchString(string(h.Name())) ||
		m.log.isAssumed(string(h.FullName())) || m.isMarkedGuess(dd, b.doc)
}

// compare reports whether w and h have the same label and type, apart from names. op is the change that would
// make them the same.
func (m *updatePass) compare(w, h protoreflect.FieldDescriptor) (op Op, same bool) {
	if w.IsMap() != h.IsMap() {
		return opRetype, m.src.Guessed && m.mayHaveType(w, h)
	}
	if w.IsMap() {
		_, key := m.compare(w.MapKey(), h.MapKey())
		_, value := m.compare(w.MapValue(), h.MapValue())
		return opRetype, key && value
	}
	if !m.sameType(w, h) {
		return opRetype, false
	}
	if w.IsList() != h.IsList() {
		return opRelabel, m.src.Guessed && !w.IsList()
	}
	// In proto3 the keyword optional adds explicit presence, which traffic cannot show.

	proto3 := w.ParentFile().Syntax() == protoreflect.Proto3 && h.ParentFile().Syntax() == protoreflect.Proto3
	if proto3 && !m.src.Guessed && !w.IsList() && w.Message() == nil && !schema.InOneof(w) && !schema.InOneof(h) && w.HasOptionalKeyword() != h.HasOptionalKeyword() {
		return opRelabel, false
	}
	return opRelabel, true
}

// sameType reports whether the field w of the source and the field h of the user's files have the same type.
func (m *updatePass) sameType(w, h protoreflect.FieldDescriptor) bool {
	if w.Kind() != h.Kind() {
		return w.Message() != nil && h.Message() != nil && m.sameNamed(w.Message(), h.Message()) && m.src.Guessed
	}
	switch {
	case w.Message() != nil:
		return m.sameNamed(w.Message(), h.Message())
	case w.Enum() != nil:
		return m.sameNamed(w.Enum(), h.Enum())
	}
	return true
}

// sameNamed reports whether the type w of the source and the type h of the user's files are counterparts.
func (m *updatePass) sameNamed(w, h protoreflect.Descriptor) bool {
	if m.src.Guessed {
		return true
	}
	name := m.pairs[w.FullName()]
	if name == "" {
		name = w.FullName()
	}
	return name == h.FullName()
}

// mayHaveType reports whether the recorded values of w, a field inferred from traffic, may be of h's type.
// Source.Fits has the possible types.
func (m *updatePass) mayHaveType(w, h protoreflect.FieldDescriptor) bool {
	types, known := m.src.Fits[string(w.FullName())]
	switch {
	case !known:
		return true
	case h.IsMap():
		return w.IsMap()
	}
	return h.Message() != nil || h.IsList() != w.IsList() || slices.Contains(types, h.Kind().String())
}

// moreSpecific reports whether the inferred type of w is more precise than the declared type of h: a
// message instead of bytes, or an enum instead of a number.
func moreSpecific(w, h protoreflect.FieldDescriptor) bool {
	rank := func(f protoreflect.FieldDescriptor) int {
		switch f.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			return 3
		case protoreflect.StringKind, protoreflect.EnumKind, protoreflect.BoolKind, protoreflect.DoubleKind, protoreflect.FloatKind:
			return 1
		}
		return 0
	}
	return rank(w) > rank(h) || rank(w) == rank(h) && w.Kind() == h.Kind() && w.IsList() && !h.IsList()
}

// isMarkedGuess reports whether a comment on the declaration dd says that it is a guess.
func (m *updatePass) isMarkedGuess(dd *decl, d *document) bool {
	return guessed().MatchString(d.comments(dd))
}

// enum compares the enum w of the source with its counterpart h in the user's files, and adds what h lacks.
func (m *updatePass) enum(w, h protoreflect.EnumDescriptor) {
	b := m.blockOf(h)
	if b == nil {
		return
	}
	aliases := false
	for i := range w.Values().Len() {
		wv := w.Values().Get(i)
		hv := h.Values().ByNumber(wv.Number())
		// A second name for a number is added only if the source has the file's name for it as well, so it is an
		// alias and not a rename.
		if hv != nil && (m.src.Guessed || h.Values().ByName(wv.Name()) != nil || !hasAlias(w, wv.Number(), hv.Name())) {
			continue
		}
		full := string(h.FullName()) + "." + string(wv.Name())
		reason := ""
		switch {
		case h.ReservedRanges().Has(wv.Number()):
			reason = "the number is reserved in your file"
		case h.ReservedNames().Has(wv.Name()):
			reason = "the name is reserved in your file"
		case m.usedNames[h.FullName().Parent().Append(wv.Name())]:
			reason = "another element has this name"
		}

		if reason != "" {
			m.addChange(Change{Op: Conflict, Element: full, Kind: compare.ValueElement, Number: int32(wv.Number()), New: itoa(int(wv.Number())), Note: reason, File: b.doc.name})
			continue
		}
		// A second name for a number is an alias.
		if hv != nil || w.Values().ByNumber(wv.Number()) != wv {
			aliases = true
		}
		m.usedNames[h.FullName().Parent().Append(wv.Name())] = true
		b.insert(addition{kind: valueDecl, number: int(wv.Number()), text: b.aligned(b.indent(), "", string(wv.Name()), itoa(int(wv.Number())), valueOptions(wv))})
		m.recordAdded(full, compare.ValueElement, int32(wv.Number()), itoa(int(wv.Number())), b.doc)
	}

	if o, _ := h.Options().(*descriptorpb.EnumOptions); aliases && !o.GetAllowAlias() {
		// Without the option, the compiler rejects two names for one number.
		first := insertionPoint{b, -1}
		b.doc.added[first] = append(b.doc.added[first], addition{text: b.indent() + "option allow_alias = true;"})
	}

	if m.src.Complete {
		for i := range h.Values().Len() {
			if hv := h.Values().Get(i); w.Values().ByNumber(hv.Number()) == nil && hv.Number() != 0 {
				m.markGone(hv, b.find(valueDecl, 0, elementName(hv)), b.doc, int32(hv.Number()))
			}
		}
	}
}

// service adds the service w of the source, or the methods that the service of the same name in the user's
// files lacks.
func (m *updatePass) service(w protoreflect.ServiceDescriptor) {
	h := m.have.Service(string(w.FullName()))
	if h == nil {
		m.addService(w)
		return
	}
	b := m.blockOf(h)
	if b == nil {
		return
	}

	for i := range w.Methods().Len() {
		wm := w.Methods().Get(i)
		hm := h.Methods().ByName(wm.Name())
		// A new method is inserted behind the others.
		if hm == nil {
			p := m.printer(b.doc, h.FullName(), b)
			if text, ok := p.method(wm); ok {
				b.insert(addition{kind: methodDecl, text: text})
				m.recordAdded(string(h.FullName().Append(wm.Name())), compare.MethodElement, 0, methodText(wm), b.doc)
			}
			continue
		}
		m.method(wm, hm)
	}
	if m.src.Complete {
		for i := range h.Methods().Len() {
			if hm := h.Methods().Get(i); w.Methods().ByName(hm.Name()) == nil {
				m.markGone(hm, b.find(methodDecl, 0, string(hm.FullName())), b.doc, 0)
			}
		}
	}
}

// method compares the method w of the source with its counterpart h in the user's files. A difference is a
// conflict.
func (m *updatePass) method(w, h protoreflect.MethodDescriptor) {
	if m.src.Guessed {
		if w.IsStreamingClient() && !h.IsStreamingClient() || w.IsStreamingServer() && !h.IsStreamingServer() {
			m.addConflict(h, 0, methodText(h), methodText(w), "the recorded calls are streams")
		}
		return
	}
	if w.IsStreamingClient() != h.IsStreamingClient() || w.IsStreamingServer() != h.IsStreamingServer() ||
		!m.sameNamed(w.Input(), h.Input()) || !m.sameNamed(w.Output(), h.Output()) {
		m.addConflict(h, 0, methodText(h), methodText(w), "the two declarations of the method differ")
	}
}
