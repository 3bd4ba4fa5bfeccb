package update

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/check"
)

// pairAll finds, for the types of the source, their counterparts in the user's files: types with the same name,
// and types that are used by the same fields and methods of paired types.
func (m *updatePass) pairAll() {
	// w is a declaration of the source and h its counterpart in the files, here and in the rest of the package.
	m.pairs, m.reversePairs = map[protoreflect.FullName]protoreflect.FullName{}, map[protoreflect.FullName]protoreflect.FullName{}
	m.enums, m.usedNames = map[protoreflect.FullName]protoreflect.EnumDescriptor{}, map[protoreflect.FullName]bool{}
	for e := range m.have.Enums() {
		m.enums[e.FullName()] = e
	}

	for _, f := range m.have.Files {
		m.symbols(f)
	}
	wantEnums := map[protoreflect.FullName]protoreflect.EnumDescriptor{}
	for e := range m.src.Schema.Enums() {
		wantEnums[e.FullName()] = e
	}
	p := pairing{m: m, wantEnums: wantEnums}

	// Types with the same name, or with a name that Source.Known maps. For guessed types, names that are not in
	// Known mean nothing.
	for w := range m.src.Schema.Messages() {
		name := string(w.FullName())
		if known := m.src.Known[name]; known != "" {
			name = known
		}
		if h := m.have.Message(name); h != nil && !(m.src.Guessed && m.src.Known != nil && m.src.Known[string(w.FullName())] == "") {
			p.join(w, h)
		}
	}
	for name, e := range wantEnums {
		if h := m.enums[name]; h != nil {
			p.join(e, h)
		}
	}

	// Types of the methods that both have.
	for sd := range m.src.Schema.Services() {
		for i := range sd.Methods().Len() {
			w := sd.Methods().Get(i)
			if h := m.have.Method(string(sd.FullName()), string(w.Name())); h != nil {
				p.pairTypes(w.Input(), h.Input())
				p.pairTypes(w.Output(), h.Output())
			}
		}
	}

	// Each pair can reveal further pairs: those of its fields.
	for len(p.queue) > 0 {
		pair := p.queue[0]
		p.queue = p.queue[1:]
		for i := range pair[0].Fields().Len() {
			w := pair[0].Fields().Get(i)
			if h := pair[1].Fields().ByNumber(w.Number()); h != nil {
				p.fields(w, h)
			}
		}
	}
}

// addPackage marks the names of a package and of its parents as used, so that no type gets them.
func (m *updatePass) addPackage(pkg protoreflect.FullName) {
	for ; pkg != ""; pkg = pkg.Parent() {
		m.usedNames[pkg] = true
	}
}

// symbols marks all full names declared in a file as used, so that no new element gets them.
func (m *updatePass) symbols(f protoreflect.FileDescriptor) {
	m.addPackage(f.Package())
	m.symbolsOf(f.Messages(), f.Enums(), f.Extensions())
	for i := range f.Services().Len() {
		m.usedNames[f.Services().Get(i).FullName()] = true
	}
}

// symbolsOf marks the full names of declarations, including nested ones, as used.
func (m *updatePass) symbolsOf(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors, extensions protoreflect.ExtensionDescriptors) {
	for i := range extensions.Len() {
		m.usedNames[extensions.Get(i).FullName()] = true
	}
	for i := range enums.Len() {
		m.usedNames[enums.Get(i).FullName()] = true
		for j := range enums.Get(i).Values().Len() {
			m.usedNames[enums.Get(i).Values().Get(j).FullName()] = true
		}
	}
	for i := range messages.Len() {
		md := messages.Get(i)
		m.usedNames[md.FullName()] = true
		for j := range md.Fields().Len() {
			m.usedNames[md.Fields().Get(j).FullName()] = true
		}
		for j := range md.Oneofs().Len() {
			m.usedNames[md.Oneofs().Get(j).FullName()] = true
		}
		m.symbolsOf(md.Messages(), md.Enums(), md.Extensions())
	}
}

// A pairing is the state of pairAll.
type pairing struct {
	// m is the update pass in which the pairs are stored.
	m *updatePass
	// wantEnums maps full names to the enums of the source.
	wantEnums map[protoreflect.FullName]protoreflect.EnumDescriptor
	// queue has the pairs of messages (source, files) whose fields were not compared yet.
	queue [][2]protoreflect.MessageDescriptor
}

// join records that the type w of the source and the type h of the user's files are counterparts, unless one of
// them already has a counterpart.
func (p *pairing) join(w, h protoreflect.Descriptor) {
	if p.m.pairs[w.FullName()] != "" || p.m.reversePairs[h.FullName()] != "" {
		return
	}
	p.m.pairs[w.FullName()], p.m.reversePairs[h.FullName()] = h.FullName(), w.FullName()
	if wm, ok := w.(protoreflect.MessageDescriptor); ok {
		p.queue = append(p.queue, [2]protoreflect.MessageDescriptor{wm, h.(protoreflect.MessageDescriptor)})
	}
}

// fields pairs the types of the field w of the source and its counterpart h in the user's files.
func (p *pairing) fields(w, h protoreflect.FieldDescriptor) {
	// Keys are scalars, so the values are what can be paired.
	if w.IsMap() && h.IsMap() {
		w, h = w.MapValue(), h.MapValue()
	} else if w.IsMap() || h.IsMap() {
		return
	}
	switch {
	case w.Message() != nil && h.Message() != nil:
		p.pairTypes(w.Message(), h.Message())
	case w.Enum() != nil && h.Enum() != nil:
		p.pairTypes(w.Enum(), h.Enum())
	}
}

// pairTypes records that w and h, which are used in the same place, are counterparts, unless the other side has
// a type with the same name or the two contradict each other.
func (p *pairing) pairTypes(w, h protoreflect.Descriptor) {
	if w.IsPlaceholder() || h.IsPlaceholder() || isWellKnown(w.ParentFile().Path()) || isWellKnown(h.ParentFile().Path()) {
		return
	}

	// Names of a source that is no guess are reliable, so a type with the same name is the better counterpart.
	if !p.m.src.Guessed {
		if p.m.have.Message(string(w.FullName())) != nil || p.m.enums[w.FullName()] != nil {
			return
		}
		if p.m.src.Schema.Message(string(h.FullName())) != nil || p.wantEnums[h.FullName()] != nil {
			return
		}
	}
	if wm, ok := w.(protoreflect.MessageDescriptor); ok && !compatible(wm, h.(protoreflect.MessageDescriptor)) {
		return
	}
	p.join(w, h)
}

// compatible reports whether the fields with the same number in both messages have compatible wire types.
func compatible(w, h protoreflect.MessageDescriptor) bool {
	for i := range w.Fields().Len() {
		wf := w.Fields().Get(i)
		if hf := h.Fields().ByNumber(wf.Number()); hf != nil && !sameWire(wf, hf) {
			return false
		}
	}
	return true
}

// sameWire reports whether both fields can decode the same bytes.
func sameWire(w, h protoreflect.FieldDescriptor) bool {
	if check.WireTypeOf(w.Kind()) == check.WireTypeOf(h.Kind()) {
		return true
	}
	return packedIn(w, h) || packedIn(h, w)
}

// packedIn reports whether b, a bytes field, may contain the packed elements of the repeated field a.
func packedIn(a, b protoreflect.FieldDescriptor) bool {
	return a.IsList() && b.Kind() == protoreflect.BytesKind && check.WireTypeOf(a.Kind()) != check.WireTypeOf(b.Kind())
}

// isWellKnown reports whether a file with this path, such as google/protobuf/any.proto, ships with protobuf.
func isWellKnown(file string) bool { return strings.HasPrefix(file, "google/protobuf/") }
