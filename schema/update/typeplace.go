package update

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A place is where a new type goes.
type place struct {
	want   protoreflect.Descriptor
	full   protoreflect.FullName // the name it gets
	doc    *document
	parent *block // that it is added to; nil where that is a new type
}

// placeTypes finds places and names for the types that the files lack.
func (m *merge) placeTypes() {
	m.placed = map[protoreflect.FullName]*place{}
	m.paths = map[string][]string{}
	for _, f := range m.have.Files {
		for i := range f.Imports().Len() {
			m.paths[f.Path()] = append(m.paths[f.Path()], f.Imports().Get(i).Path())
		}
	}
	if m.src.Guessed {
		m.placeNeeded()
		return
	}
	users := m.users()
	for w := range m.src.Schema.Messages() {
		m.placeType(w, users[w.FullName()])
	}
	for w := range m.src.Schema.Enums() {
		m.placeType(w, users[w.FullName()])
	}
}

// users names a file for each type of the source that a type of the files uses.
func (m *merge) users() map[protoreflect.FullName]string {
	users := map[protoreflect.FullName]string{}
	for w := range m.src.Schema.Messages() {
		h := m.have.Message(string(m.pairs[w.FullName()]))
		if h == nil {
			continue
		}
		for i := range w.Fields().Len() {
			if d := typeUsed(w.Fields().Get(i)); d != nil && users[d.FullName()] == "" {
				users[d.FullName()] = h.ParentFile().Path()
			}
		}
	}
	return users
}

// typeUsed is the message or enum that a field or a map's values have.
func typeUsed(f protoreflect.FieldDescriptor) protoreflect.Descriptor {
	if f.IsMap() {
		f = f.MapValue()
	}
	switch {
	case f.Message() != nil:
		return f.Message()
	case f.Enum() != nil:
		return f.Enum()
	}
	return nil
}

// placeNeeded finds places for what new fields and methods need, and no more.
func (m *merge) placeNeeded() {
	var visit func(d protoreflect.Descriptor, user string)
	visit = func(d protoreflect.Descriptor, user string) {
		if d == nil || m.pairs[d.FullName()] != "" || m.placed[d.FullName()] != nil || isWellKnown(d.ParentFile().Path()) {
			return
		}
		m.placeType(d, user)
		if md, ok := d.(protoreflect.MessageDescriptor); ok && m.placed[d.FullName()] != nil {
			for i := range md.Fields().Len() {
				visit(typeUsed(md.Fields().Get(i)), m.placed[d.FullName()].doc.name)
			}
		}
	}
	m.eachNewFieldType(visit)
	m.eachNewMethodType(visit)
}

// eachNewFieldType calls visit with the types of fields that the files get or whose
// type is replaced, and with the file.
func (m *merge) eachNewFieldType(visit func(d protoreflect.Descriptor, user string)) {
	for w := range m.src.Schema.Messages() {
		if h := m.have.Message(string(m.pairs[w.FullName()])); h != nil {
			for i := range w.Fields().Len() {
				f := w.Fields().Get(i)
				hf := h.Fields().ByNumber(f.Number())
				if hf == nil && m.refusal(f, h) == "" || hf != nil && m.replacedBy(f, hf) {
					visit(typeUsed(f), h.ParentFile().Path())
				}
			}
		}
	}
}

// eachNewMethodType calls visit with the requests and responses of methods that the
// files get, and with the file.
func (m *merge) eachNewMethodType(visit func(d protoreflect.Descriptor, user string)) {
	for sd := range m.src.Schema.Services() {
		h := m.have.Service(string(sd.FullName()))
		user := ""
		if h != nil {
			user = h.ParentFile().Path()
		} else if d := m.fileFor(sd, ""); d != nil {
			user = d.name
		}
		for i := range sd.Methods().Len() {
			if w := sd.Methods().Get(i); h == nil || h.Methods().ByName(w.Name()) == nil {
				visit(w.Input(), user)
				visit(w.Output(), user)
			}
		}
	}
}

// replacedBy reports whether the type of a field of the files is replaced by w's.
func (m *merge) replacedBy(w, h protoreflect.FieldDescriptor) bool {
	b := m.blockOf(h.ContainingMessage())
	if b == nil {
		return false
	}
	dd := b.find(fieldDecl, int(h.Number()), "")
	return dd != nil && m.replaces(w, h, b, dd)
}

func (m *merge) placeType(w protoreflect.Descriptor, user string) {
	if m.pairs[w.FullName()] != "" || isWellKnown(w.ParentFile().Path()) {
		return
	}
	pl := &place{want: w}
	parent := w.Parent().FullName()
	_, nested := w.Parent().(protoreflect.MessageDescriptor)
	switch {
	case nested && m.pairs[parent] != "":
		h := m.have.Message(string(m.pairs[parent]))
		if pl.parent = m.blockOf(h); pl.parent == nil {
			return
		}
		pl.doc, pl.full = pl.parent.doc, h.FullName().Append(w.Name())
	case nested && m.placed[parent] != nil:
		pl.doc, pl.full = m.placed[parent].doc, m.placed[parent].full.Append(w.Name())
	case nested && !m.src.Guessed:
		return // its parent could not be placed, which is said
	default:
		if pl.doc = m.fileFor(w, user); pl.doc == nil {
			return
		}
		pl.parent, pl.full = pl.doc.root, protoreflect.FullName(join(pl.doc.pkg, m.shortName(w)))
	}
	if !m.reserveNames(pl) {
		return
	}
	m.placed[w.FullName()] = pl
	m.order = append(m.order, w.FullName())
}

// shortName is the name of a new type: an inferred one is named after the root
// that it was found in, whose full name that root may be.
func (m *merge) shortName(w protoreflect.Descriptor) string {
	name, found := string(w.Name()), ""
	for _, root := range m.src.Known {
		first, _, _ := strings.Cut(root, ".")
		flat := strings.ReplaceAll(root, ".", "_")
		flat = strings.ToUpper(flat[:min(1, len(flat))]) + flat[min(1, len(flat)):]
		if first != root && strings.HasPrefix(name, flat) && len(flat) > len(found) {
			found = flat
		}
	}
	if found == "" {
		return name
	}
	return found[strings.LastIndexByte(found, '_')+1:] + name[len(found):]
}

// reserveNames takes the names of a new type.
func (m *merge) reserveNames(pl *place) bool {
	if m.src.Guessed {
		base := pl.full
		for i := 2; m.haveAll[pl.full]; i++ {
			pl.full = base + protoreflect.FullName("_"+itoa(i))
		}
	}
	taken := m.haveAll[pl.full]
	if e, ok := pl.want.(protoreflect.EnumDescriptor); ok {
		for i := range e.Values().Len() {
			taken = taken || m.haveAll[protoreflect.FullName(join(string(pl.full.Parent()), string(e.Values().Get(i).Name())))]
		}
	}
	if taken {
		m.addChange(Change{Op: Conflict, Element: string(pl.full), Kind: kindOf(pl.want), New: counted(pl.want), File: pl.doc.name, Note: "a name of it is taken there"})
		return false
	}
	m.haveAll[pl.full] = true
	switch w := pl.want.(type) {
	case protoreflect.EnumDescriptor:
		for i := range w.Values().Len() {
			m.haveAll[protoreflect.FullName(join(string(pl.full.Parent()), string(w.Values().Get(i).Name())))] = true
		}
	case protoreflect.MessageDescriptor:
		for i := range w.Fields().Len() {
			m.haveAll[pl.full.Append(w.Fields().Get(i).Name())] = true
		}
	}
	return true
}

// isPlacedIn reports whether the type was placed in the new type of that name.
func (m *merge) isPlacedIn(w protoreflect.Descriptor, full protoreflect.FullName) bool {
	pl := m.placed[w.FullName()]
	return pl != nil && pl.parent == nil && pl.full.Parent() == full
}

// fileFor is the file for a new type or service of the package's scope.
func (m *merge) fileFor(w protoreflect.Descriptor, user string) *document {
	file := w.ParentFile()
	if m.src.Guessed && user != "" {
		return m.document(user)
	}
	if d := m.docs[file.Path()]; d != nil && d.pkg == string(file.Package()) {
		return d
	}
	var same []string
	for _, f := range m.have.Files {
		if f.Package() == file.Package() {
			same = append(same, f.Path())
		}
	}
	switch {
	case slices.Contains(same, file.Path()):
		return m.document(file.Path())
	case !m.src.Guessed && m.alike(same):
		return m.newDocument(file)
	case len(same) == 1, len(same) > 0 && !slices.Contains(same, user):
		return m.document(same[0])
	case len(same) > 0:
		return m.document(user)
	}
	return m.newDocument(file)
}

// alike reports whether the source has some of a package's files by their paths,
// so that another file of its package is a new one.
func (m *merge) alike(files []string) bool {
	return slices.ContainsFunc(m.src.Schema.Files, func(f protoreflect.FileDescriptor) bool { return slices.Contains(files, f.Path()) })
}

// newDocument begins a file as the source has it, or beside one of that path.
func (m *merge) newDocument(f protoreflect.FileDescriptor) *document {
	name := path.Clean("/" + f.Path())[1:]
	if path.Ext(name) != ".proto" {
		name += ".proto"
	}
	for base := strings.TrimSuffix(name, ".proto"); m.texts[name] != "" || m.docs[name] != nil && m.docs[name].pkg != string(f.Package()); {
		base += "_new"
		name = base + ".proto"
	}
	if d := m.docs[name]; d != nil {
		return d
	}
	text := "syntax = \"proto3\";\n"
	switch f.Syntax() {
	case protoreflect.Proto2:
		text = "syntax = \"proto2\";\n"
	case protoreflect.Editions:
		text = "edition = \"2023\";\n"
	}
	if f.Package() != "" {
		text += "\npackage " + string(f.Package()) + ";\n"
	}
	d, err := parse(name, text)
	if err != nil {
		return nil
	}
	d.fresh = true
	m.docs[name] = d
	m.addPackage(f.Package()) // which hides what is called like a part of it
	return d
}

// ref is how a type of the source is called in the printer's place. The file
// gets the import that this needs.
func (p *printer) ref(d protoreflect.Descriptor, at protoreflect.Descriptor) (string, bool) {
	full, file := d.FullName(), ""
	switch {
	case d.IsPlaceholder():
		p.addConflict(at, "the source has not its type "+string(full))
		return "", false
	case isWellKnown(d.ParentFile().Path()):
		file = d.ParentFile().Path()
	case p.m.pairs[full] != "":
		full = p.m.pairs[full]
		if h := p.m.have.Message(string(full)); h != nil {
			file = h.ParentFile().Path()
		} else {
			file = p.m.enums[full].ParentFile().Path()
		}
	case p.m.placed[full] != nil:
		pl := p.m.placed[full]
		full, file = pl.full, pl.doc.name
	default:
		p.addConflict(at, "its type "+string(full)+" has no place in the files")
		return "", false
	}
	if file != p.doc.name && !p.m.visible(p.doc.name, file) {
		if p.m.reaches(file, p.doc.name) {
			p.addConflict(at, "its type is in "+file+", which imports this file")
			return "", false
		}
		p.m.paths[p.doc.name] = append(p.m.paths[p.doc.name], file)
		p.doc.addImport(file)
	}
	return p.spell(full), true
}

// spell is the shortest name that means the type in the printer's scope.
func (p *printer) spell(full protoreflect.FullName) string {
	for scope := p.scope; ; scope = scope.Parent() {
		rest, within := strings.CutPrefix(string(full), string(scope)+".")
		if scope == "" {
			rest, within = string(full), true
		}
		if within {
			if p.resolvesTo(rest, full) {
				return rest
			}
			return "." + string(full)
		}
	}
}

// resolvesTo reports whether name is full where the printer stands: no scope
// further in has something else by the name's first part.
func (p *printer) resolvesTo(name string, full protoreflect.FullName) bool {
	first, _, _ := strings.Cut(name, ".")
	for scope := p.scope; ; scope = scope.Parent() {
		if p.m.haveAll[protoreflect.FullName(join(string(scope), first))] {
			return join(string(scope), name) == string(full)
		}
		if scope == "" {
			return name == string(full)
		}
	}
}
