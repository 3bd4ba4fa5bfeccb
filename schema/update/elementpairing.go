package update

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/check"
)

// pairAll finds which types of the source are which of the files: those of the
// same name, and those that the same fields and methods of paired types use.
func (m *merge) pairAll() {
	m.pairs, m.back = map[protoreflect.FullName]protoreflect.FullName{}, map[protoreflect.FullName]protoreflect.FullName{}
	m.enums, m.haveAll = map[protoreflect.FullName]protoreflect.EnumDescriptor{}, map[protoreflect.FullName]bool{}
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
	for sd := range m.src.Schema.Services() {
		for i := range sd.Methods().Len() {
			w := sd.Methods().Get(i)
			if h := m.have.Method(string(sd.FullName()), string(w.Name())); h != nil {
				p.pairTypes(w.Input(), h.Input())
				p.pairTypes(w.Output(), h.Output())
			}
		}
	}
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

func (m *merge) addPackage(pkg protoreflect.FullName) {
	for ; pkg != ""; pkg = pkg.Parent() {
		m.haveAll[pkg] = true
	}
}

func (m *merge) symbols(f protoreflect.FileDescriptor) {
	m.addPackage(f.Package())
	m.symbolsOf(f.Messages(), f.Enums(), f.Extensions())
	for i := range f.Services().Len() {
		m.haveAll[f.Services().Get(i).FullName()] = true
	}
}

func (m *merge) symbolsOf(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors, extensions protoreflect.ExtensionDescriptors) {
	for i := range extensions.Len() {
		m.haveAll[extensions.Get(i).FullName()] = true
	}
	for i := range enums.Len() {
		m.haveAll[enums.Get(i).FullName()] = true
		for j := range enums.Get(i).Values().Len() {
			m.haveAll[enums.Get(i).Values().Get(j).FullName()] = true
		}
	}
	for i := range messages.Len() {
		md := messages.Get(i)
		m.haveAll[md.FullName()] = true
		for j := range md.Fields().Len() {
			m.haveAll[md.Fields().Get(j).FullName()] = true
		}
		for j := range md.Oneofs().Len() {
			m.haveAll[md.Oneofs().Get(j).FullName()] = true
		}
		m.symbolsOf(md.Messages(), md.Enums(), md.Extensions())
	}
}

type pairing struct {
	m         *merge
	wantEnums map[protoreflect.FullName]protoreflect.EnumDescriptor
	queue     [][2]protoreflect.MessageDescriptor
}

// join makes a pair, if neither has another partner.
func (p *pairing) join(w, h protoreflect.Descriptor) {
	if p.m.pairs[w.FullName()] != "" || p.m.back[h.FullName()] != "" {
		return
	}
	p.m.pairs[w.FullName()], p.m.back[h.FullName()] = h.FullName(), w.FullName()
	if wm, ok := w.(protoreflect.MessageDescriptor); ok {
		p.queue = append(p.queue, [2]protoreflect.MessageDescriptor{wm, h.(protoreflect.MessageDescriptor)})
	}
}

func (p *pairing) fields(w, h protoreflect.FieldDescriptor) {
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

// pairTypes makes a pair of two types that are used in the same place, unless the
// other side has one of the same name, or the two contradict each other.
func (p *pairing) pairTypes(w, h protoreflect.Descriptor) {
	if w.IsPlaceholder() || h.IsPlaceholder() || isWellKnown(w.ParentFile().Path()) || isWellKnown(h.ParentFile().Path()) {
		return
	}
	if !p.m.src.Guessed {
		if p.m.have.Message(string(w.FullName())) != nil || p.m.enums[w.FullName()] != nil {
			return
		}
		if p.m.src.Schema.Message(string(h.FullName())) != nil || p.wantEnums[h.FullName()] != nil {
			return
		}
	}
	if wm, ok := w.(protoreflect.MessageDescriptor); ok && !fits(wm, h.(protoreflect.MessageDescriptor)) {
		return
	}
	p.join(w, h)
}

// fits reports whether no field that both messages have contradicts.
func fits(w, h protoreflect.MessageDescriptor) bool {
	for i := range w.Fields().Len() {
		wf := w.Fields().Get(i)
		if hf := h.Fields().ByNumber(wf.Number()); hf != nil && !sameWire(wf, hf) {
			return false
		}
	}
	return true
}

// sameWire reports whether the same bytes can be of both fields.
func sameWire(w, h protoreflect.FieldDescriptor) bool {
	if check.WireOf(w.Kind()) == check.WireOf(h.Kind()) {
		return true
	}
	return packedIn(w, h) || packedIn(h, w)
}

// packedIn reports whether b may hold the packed elements of a as bytes.
func packedIn(a, b protoreflect.FieldDescriptor) bool {
	return a.IsList() && b.Kind() == protoreflect.BytesKind && check.WireOf(a.Kind()) != check.WireOf(b.Kind())
}

func isWellKnown(file string) bool { return strings.HasPrefix(file, "google/protobuf/") }
