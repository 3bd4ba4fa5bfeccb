package update

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A placement is the place in the user's files where a new type is inserted.
type placement struct {
	// want is the type in the source.
	want protoreflect.Descriptor
	// fullName is the full name that the type gets.
	fullName protoreflect.FullName
	// doc is the file into which it is inserted.
	doc *document
	// parent is the block into which it is inserted; nil if it is inside another new type.
	parent *block
}

// placeTypes chooses files and names for the types of the source that the user's files lack.
func (m *updatePass) placeTypes() {
	m.placed = map[protoreflect.FullName]*placement{}
	m.paths = map[string][]string{}
	for _, f := range m.have.Files {
		for i := range f.Imports().Len() {
			m.paths[f.Path()] = append(m.paths[f.Path()], f.Imports().Get(i).Path())
		}
	}
	// Guessed types are added only if something refers to them: their names mean little on their own.
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

// users maps new types of the source to the path of a file that will refer to them.
func (m *updatePass) users() map[protoreflect.FullName]string {
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

// typeUsed returns the message or enum type of a field; for a map, of its values. It returns nil for scalars.
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

// placeNeeded chooses places for the types that new fields and methods need, directly or indirectly.
func (m *updatePass) placeNeeded() {
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

// eachNewFieldType calls visit with the type of each field that is added or gets another type, and with the
// path of the field's file.
func (m *updatePass) eachNewFieldType(visit func(d protoreflect.Descriptor, user string)) {
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

// eachNewMethodType calls visit with the request and response types of methods that are added, and with the
// path of the method's file.
func (m *updatePass) eachNewMethodType(visit func(d protoreflect.Descriptor, user string)) {
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

// replacedBy reports whether the type of w is to replace that of the field h in the user's files.
func (m *updatePass) replacedBy(w, h protoreflect.FieldDescriptor) bool {
	b := m.blockOf(h.ContainingMessage())
	if b == nil {
		return false
	}
	dd := b.find(fieldDecl, int(h.Number()), "")
	return dd != nil && m.replaces(w, h, b, dd)
}

// placeType chooses the place of the new type w. A nested type stays in its parent. user is the path of a file
// that will refer to it.
func (m *updatePass) placeType(w protoreflect.Descriptor, user string) {
	if m.pairs[w.FullName()] != "" || isWellKnown(w.ParentFile().Path()) {
		return
	}
	pl := &placement{want: w}
	parent := w.Parent().FullName()
	_, nested := w.Parent().(protoreflect.MessageDescriptor)
	switch {
	case nested && m.pairs[parent] != "":
		h := m.have.Message(string(m.pairs[parent]))
		if pl.parent = m.blockOf(h); pl.parent == nil {
			return
		}
		pl.doc, pl.fullName = pl.parent.doc, h.FullName().Append(w.Name())
	case nested && m.placed[parent] != nil:
		pl.doc, pl.fullName = m.placed[parent].doc, m.placed[parent].fullName.Append(w.Name())
	case nested && !m.src.Guessed:
		// The parent has no place, which was recorded as a conflict.
		return
	default:
		if pl.doc = m.fileFor(w, user); pl.doc == nil {
			return
		}
		pl.parent, pl.fullName = pl.doc.root, protoreflect.FullName(join(pl.doc.pkg, m.shortName(w)))
	}

	if !m.reserveNames(pl) {
		return
	}
	m.placed[w.FullName()] = pl
	m.order = append(m.order, w.FullName())
}

// shortName returns the simple name for a new type. The name of an inferred type begins with the full name of
// the type in which it was found, whose package is removed.
func (m *updatePass) shortName(w protoreflect.Descriptor) string {
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

// reserveNames marks the names that a new type declares as used. If one of them is in use, it records a
// conflict and returns false.
func (m *updatePass) reserveNames(pl *placement) bool {
	if m.src.Guessed {
		// The name of a guessed type is arbitrary, so a number makes it unique.
		base := pl.fullName
		for i := 2; m.usedNames[pl.fullName]; i++ {
			pl.fullName = base + protoreflect.FullName("_"+itoa(i))
		}
	}

	// The values of an enum are names in the scope around it.
	taken := m.usedNames[pl.fullName]
	if e, ok := pl.want.(protoreflect.EnumDescriptor); ok {
		for i := range e.Values().Len() {
			taken = taken || m.usedNames[protoreflect.FullName(join(string(pl.fullName.Parent()), string(e.Values().Get(i).Name())))]
		}
	}
	if taken {
		m.addChange(Change{Op: Conflict, Element: string(pl.fullName), Kind: kindOf(pl.want), New: sizeText(pl.want), File: pl.doc.name, Note: "another element has one of its names"})
		return false
	}

	m.usedNames[pl.fullName] = true
	switch w := pl.want.(type) {
	case protoreflect.EnumDescriptor:
		for i := range w.Values().Len() {
			m.usedNames[protoreflect.FullName(join(string(pl.fullName.Parent()), string(w.Values().Get(i).Name())))] = true
		}
	case protoreflect.MessageDescriptor:
		for i := range w.Fields().Len() {
			m.usedNames[pl.fullName.Append(w.Fields().Get(i).Name())] = true
		}
	}
	return true
}

// isPlacedIn reports whether the type w is inserted inside the new type called full.
func (m *updatePass) isPlacedIn(w protoreflect.Descriptor, full protoreflect.FullName) bool {
	pl := m.placed[w.FullName()]
	return pl != nil && pl.parent == nil && pl.fullName.Parent() == full
}

// fileFor returns the file into which a new type or service is inserted. user is the path of a file that refers
// to it, or "".
func (m *updatePass) fileFor(w protoreflect.Descriptor, user string) *document {
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

	// The file of the same path is best. A source that has the same files gets a new one; otherwise a file of
	// the same package is used.
	switch {
	case slices.Contains(same, file.Path()):
		return m.document(file.Path())
	case !m.src.Guessed && m.sharesFiles(same):
		return m.newDocument(file)
	case len(same) == 1, len(same) > 0 && !slices.Contains(same, user):
		return m.document(same[0])
	case len(same) > 0:
		return m.document(user)
	}
	return m.newDocument(file)
}

// sharesFiles reports whether the source has some of these files of a package. Its other files of that package
// are then new files.
func (m *updatePass) sharesFiles(files []string) bool {
	return slices.ContainsFunc(m.src.Schema.Files, func(f protoreflect.FileDescriptor) bool { return slices.Contains(files, f.Path()) })
}

// newDocument creates a file with the path of f, or with a similar path if that is in use. It returns nil if it
// cannot.
func (m *updatePass) newDocument(f protoreflect.FileDescriptor) *document {
	name := path.Clean("/" + f.Path())[1:]
	if path.Ext(name) != ".proto" {
		name += ".proto"
	}

	// Another file of that path has another package.
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
	d.isNew = true
	m.docs[name] = d

	// A type with the name of a package would hide it.
	m.addPackage(f.Package())
	return d
}

// ref returns the name by which the text of the printer refers to the type d of the source, and adds the import
// that this needs. If the type cannot be referred to, ok is false and a conflict is recorded for at.
func (p *printer) ref(d protoreflect.Descriptor, at protoreflect.Descriptor) (string, bool) {
	// The type may be well-known, a counterpart in the files, or new.
	full, file := d.FullName(), ""
	switch {
	case d.IsPlaceholder():
		p.addConflict(at, "the source lacks its type "+string(full))
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
		full, file = pl.fullName, pl.doc.name
	default:
		p.addConflict(at, "its type "+string(full)+" is neither in the files nor among the new types")
		return "", false
	}

	// A type of another file must be imported, unless that would close a cycle of imports.
	if file != p.doc.name && !p.m.visible(p.doc.name, file) {
		if p.m.reaches(file, p.doc.name) {
			p.addConflict(at, "its type is in "+file+", which imports this file")
			return "", false
		}
		p.m.paths[p.doc.name] = append(p.m.paths[p.doc.name], file)
		p.doc.addImport(file)
	}
	return p.shortestName(full), true
}

// shortestName returns the shortest name that refers to the type full in the printer's scope.
func (p *printer) shortestName(full protoreflect.FullName) string {
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

// resolvesTo reports whether name, resolved from the printer's scope, is the type full. protobuf resolves the
// first part of a name in the innermost scope that declares it.
func (p *printer) resolvesTo(name string, full protoreflect.FullName) bool {
	first, _, _ := strings.Cut(name, ".")
	for scope := p.scope; ; scope = scope.Parent() {
		if p.m.usedNames[protoreflect.FullName(join(string(scope), first))] {
			return join(string(scope), name) == string(full)
		}
		if scope == "" {
			return name == string(full)
		}
	}
}
