package update

import (
	"slices"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/compare"
)

// additions splices in what is new, and marks what is gone.
func (m *merge) additions() error {
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
	for _, name := range m.order {
		m.addType(m.placed[name])
	}
	for w := range m.src.Schema.Services() {
		m.service(w)
	}
	if m.src.Complete {
		m.markGoneTypes()
	}
	return nil
}

func (m *merge) message(w, h protoreflect.MessageDescriptor) {
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
			continue // written with the first of its members
		}
		if reason := m.refusal(wf, h); reason != "" {
			m.addChange(Change{
				Op: Conflict, Element: string(h.FullName()) + "." + string(wf.Name()), Kind: compare.FieldElement, Number: int32(wf.Number()),
				New: short(wf), Note: reason, File: b.doc.name,
			})
			continue
		}
		m.addField(wf, h, b, newOneofs)
	}
	if m.src.Complete {
		for i := range h.Fields().Len() {
			if hf := h.Fields().Get(i); w.Fields().ByNumber(hf.Number()) == nil {
				m.markGone(hf, b.find(fieldDecl, int(hf.Number()), ""), b.doc, int32(hf.Number()))
			}
		}
	}
}

// refusal says why h cannot have the field.
func (m *merge) refusal(w protoreflect.FieldDescriptor, h protoreflect.MessageDescriptor) string {
	switch {
	case h.ReservedRanges().Has(w.Number()):
		return "the number is reserved"
	case h.ReservedNames().Has(w.Name()):
		return "the name is reserved"
	case h.ExtensionRanges().Has(w.Number()):
		return "the number is one of extensions"
	}
	if f := byJSONName(h, w); f != nil {
		return "the name is that of field " + itoa(int(f.Number()))
	}
	if m.haveAll[h.FullName().Append(w.Name())] {
		return "the name is taken there"
	}
	if d := m.document(h.ParentFile().Path()); w.Kind() == protoreflect.GroupKind && d != nil && d.syntax != "editions" {
		return "a group is not added"
	}
	return ""
}

func (m *merge) addField(w protoreflect.FieldDescriptor, h protoreflect.MessageDescriptor, b *block, newOneofs map[protoreflect.Name]bool) {
	full := h.FullName().Append(w.Name())
	target := b
	if o := w.ContainingOneof(); o != nil && !o.IsSynthetic() {
		into := memberOneof(o, h)
		if into == nil {
			into = h.Oneofs().ByName(o.Name())
		}
		switch {
		case into != nil && !into.IsSynthetic():
			target = b.doc.blocks[string(into.FullName())]
		case !m.src.Guessed && m.newMembers(o, h) == o.Fields().Len() && !m.haveAll[h.FullName().Append(o.Name())]:
			newOneofs[o.Name()] = true
			m.addOneof(o, h, b)
			return
		}
	}
	if target == nil {
		return
	}
	p := m.printer(b.doc, h.FullName(), target)
	text, ok := p.field(w, target != b)
	if !ok {
		return
	}
	m.haveAll[full] = true
	target.insert(addition{kind: fieldDecl, number: int(w.Number()), text: text})
	m.recordAdded(string(full), compare.FieldElement, int32(w.Number()), short(w), b.doc)
}

// newMembers counts the members of o that h lacks and could have.
func (m *merge) newMembers(o protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor) int {
	n := 0
	for i := range o.Fields().Len() {
		if f := o.Fields().Get(i); h.Fields().ByNumber(f.Number()) == nil && m.refusal(f, h) == "" {
			n++
		}
	}
	return n
}

func (m *merge) addOneof(o protoreflect.OneofDescriptor, h protoreflect.MessageDescriptor, b *block) {
	p := m.printer(b.doc, h.FullName(), b)
	text, least, ok := p.oneof(o)
	if !ok {
		return
	}
	m.haveAll[h.FullName().Append(o.Name())] = true
	b.insert(addition{kind: fieldDecl, number: least, text: text})
	for i := range o.Fields().Len() {
		f := o.Fields().Get(i)
		m.haveAll[h.FullName().Append(f.Name())] = true
		m.recordAdded(string(h.FullName().Append(f.Name())), compare.FieldElement, int32(f.Number()), short(f), b.doc)
	}
}

func (m *merge) recordAdded(element string, kind compare.ElementKind, number int32, now string, d *document) {
	m.addChange(Change{Op: opAdd, Element: element, Kind: kind, Number: number, New: now, File: d.name})
	m.log.confirm(element, kind, number, m.src, "")
}

// field compares a field that both have.
func (m *merge) field(w, h protoreflect.FieldDescriptor, b *block) {
	dd := b.find(fieldDecl, int(h.Number()), "")
	if dd == nil {
		return
	}
	if !m.src.Guessed && schema.InOneof(w) && !schema.InOneof(h) {
		m.addConflict(h, int32(h.Number()), short(h), "oneof "+string(w.ContainingOneof().Name()), "a field is not moved into a oneof")
	}
	op, same := m.compare(w, h)
	if same {
		return
	}
	if !sameWire(w, h) {
		m.addConflict(h, int32(h.Number()), short(h), short(w), "the same bytes cannot be both")
		return
	}
	if !m.replaces(w, h, b, dd) {
		if !m.src.Guessed {
			m.addConflict(h, int32(h.Number()), short(h), short(w), "the same bytes can be both")
		}
		return
	}
	if schema.InOneof(h) && (w.IsList() || w.IsMap()) {
		m.addConflict(h, int32(h.Number()), short(h), short(w), "a oneof has no lists")
		return
	}
	p := m.printer(b.doc, h.ContainingMessage().FullName(), b)
	text, ok := p.typeOf(w, h.ContainingOneof() != nil && !h.ContainingOneof().IsSynthetic())
	if !ok {
		return
	}
	if _, plain := dd.node.(*ast.GroupNode); plain || w.Kind() == protoreflect.GroupKind {
		m.addConflict(h, int32(h.Number()), short(h), short(w), "a group")
		return
	}
	b.doc.replace(span{dd.start, dd.typ.end}, text)
	m.addChange(Change{Op: op, Element: string(h.FullName()), Kind: compare.FieldElement, Number: int32(h.Number()), Old: short(h), New: short(w), File: b.doc.name})
	m.log.confirm(string(h.FullName()), compare.FieldElement, int32(h.Number()), m.src, "")
}

// replaces reports whether w's type takes the place of h's, which is another
// that the same bytes fit.
func (m *merge) replaces(w, h protoreflect.FieldDescriptor, b *block, dd *decl) bool {
	if _, same := m.compare(w, h); same || !sameWire(w, h) {
		return false
	}
	if m.src.Guessed && !moreSpecific(w, h) && m.canBe(w, h) {
		return false
	}
	return m.o.TakeTypes || m.renamed[string(h.FullName())] || placeholderField.MatchString(string(h.Name())) ||
		m.log.assumed(string(h.FullName())) || m.isMarkedGuess(dd, b.doc)
}

// compare reports whether two fields are declared the same, but for names.
func (m *merge) compare(w, h protoreflect.FieldDescriptor) (op Op, same bool) {
	if w.IsMap() != h.IsMap() {
		return opRetype, m.src.Guessed && m.canBe(w, h)
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
	proto3 := w.ParentFile().Syntax() == protoreflect.Proto3 && h.ParentFile().Syntax() == protoreflect.Proto3
	if proto3 && !m.src.Guessed && !w.IsList() && w.Message() == nil && !schema.InOneof(w) && !schema.InOneof(h) && w.HasOptionalKeyword() != h.HasOptionalKeyword() {
		return opRelabel, false
	}
	return opRelabel, true
}

func (m *merge) sameType(w, h protoreflect.FieldDescriptor) bool {
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

func (m *merge) sameNamed(w, h protoreflect.Descriptor) bool {
	if m.src.Guessed {
		return true
	}
	name := m.pairs[w.FullName()]
	if name == "" {
		name = w.FullName()
	}
	return name == h.FullName()
}

// canBe reports whether nothing is known that keeps w from h's type.
func (m *merge) canBe(w, h protoreflect.FieldDescriptor) bool {
	types, known := m.src.Fits[string(w.FullName())]
	switch {
	case !known:
		return true
	case h.IsMap():
		return w.IsMap()
	}
	return h.Message() != nil || h.IsList() != w.IsList() || slices.Contains(types, h.Kind().String())
}

// moreSpecific reports whether a guess says more than what is there: of bytes that
// they are a message, of a number that it is an enum.
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

// isMarkedGuess reports whether a comment at the declaration says that it is a guess.
func (m *merge) isMarkedGuess(dd *decl, d *document) bool { return guessed.MatchString(d.comments(dd)) }

func (m *merge) enum(w, h protoreflect.EnumDescriptor) {
	b := m.blockOf(h)
	if b == nil {
		return
	}
	aliases := false
	for i := range w.Values().Len() {
		wv := w.Values().Get(i)
		hv := h.Values().ByNumber(wv.Number())
		if hv != nil && (m.src.Guessed || h.Values().ByName(wv.Name()) != nil || !hasAlias(w, wv.Number(), hv.Name())) {
			continue
		}
		full := string(h.FullName()) + "." + string(wv.Name())
		reason := ""
		switch {
		case h.ReservedRanges().Has(wv.Number()):
			reason = "the number is reserved"
		case h.ReservedNames().Has(wv.Name()):
			reason = "the name is reserved"
		case m.haveAll[h.FullName().Parent().Append(wv.Name())]:
			reason = "the name is taken there"
		}
		if reason != "" {
			m.addChange(Change{Op: Conflict, Element: full, Kind: compare.ValueElement, Number: int32(wv.Number()), New: itoa(int(wv.Number())), Note: reason, File: b.doc.name})
			continue
		}
		if hv != nil || w.Values().ByNumber(wv.Number()) != wv {
			aliases = true
		}
		m.haveAll[h.FullName().Parent().Append(wv.Name())] = true
		b.insert(addition{kind: valueDecl, number: int(wv.Number()), text: b.aligned(b.indent(), "", string(wv.Name()), itoa(int(wv.Number())), valueOptions(wv))})
		m.recordAdded(full, compare.ValueElement, int32(wv.Number()), itoa(int(wv.Number())), b.doc)
	}
	if o, _ := h.Options().(*descriptorpb.EnumOptions); aliases && !o.GetAllowAlias() {
		first := slot{b, -1}
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

func (m *merge) service(w protoreflect.ServiceDescriptor) {
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

func (m *merge) method(w, h protoreflect.MethodDescriptor) {
	if m.src.Guessed {
		if w.IsStreamingClient() && !h.IsStreamingClient() || w.IsStreamingServer() && !h.IsStreamingServer() {
			m.addConflict(h, 0, methodText(h), methodText(w), "streams in traffic")
		}
		return
	}
	if w.IsStreamingClient() != h.IsStreamingClient() || w.IsStreamingServer() != h.IsStreamingServer() ||
		!m.sameNamed(w.Input(), h.Input()) || !m.sameNamed(w.Output(), h.Output()) {
		m.addConflict(h, 0, methodText(h), methodText(w), "another method")
	}
}
