package extract

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
)

// Merge joins sources. Of declarations with one name and one shape one stays;
// of those with one name and several shapes the later ones are renamed.
//
// Errors: the context's, and what was found not linking.
func Merge(ctx context.Context, sources ...*Source) (*Set, error) {
	m := &merger{
		ctx: ctx, byName: map[string]*element{}, notes: map[string]string{}, std: standardTypes(), found: map[string]bool{},
		extensions: map[string]bool{}, packages: map[string]bool{},
	}
	for _, s := range sources {
		for _, f := range s.Files {
			for pkg := f.GetPackage(); pkg != ""; pkg = pkg[:max(strings.LastIndexByte(pkg, '.'), 0)] {
				m.packages[pkg] = true
			}
		}
	}
	for _, s := range sources {
		for _, v := range versions(s) {
			m.addSource(v)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.resolve()
	set, err := m.files()
	if err != nil && ctx.Err() == nil && m.dropBroken() {
		m.resolve()
		set, err = m.files()
	}
	if err != nil && ctx.Err() == nil && m.dropClashing() {
		m.resolve()
		set, err = m.files()
	}
	return set, err
}

// versions splits a source that holds several versions of a file, so that what
// is in one refers to its own.
func versions(s *Source) []*Source {
	var list []*Source
	var names []map[string]bool
	files := slices.Clone(s.Files)
	// what is sure first
	slices.SortStableFunc(files, func(a, b *descriptorpb.FileDescriptorProto) int {
		switch x, y := isGuessed(a.GetName()), isGuessed(b.GetName()); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for _, f := range files {
		declared := declaredIn(f)
		i := 0
		for i < len(list) && slices.ContainsFunc(declared, func(name string) bool { return names[i][name] }) {
			i++
		}
		if i == len(list) {
			list = append(list, &Source{Input: s.Input, Notes: s.Notes})
			names = append(names, map[string]bool{})
		}
		list[i].Files = append(list[i].Files, f)
		for _, name := range declared {
			names[i][name] = true
		}
	}
	return list
}

// declaredIn are the names by which a file is another version of one: its own,
// and those of what it declares.
func declaredIn(f *descriptorpb.FileDescriptorProto) []string {
	var names []string
	if f.GetName() != "" {
		names = append(names, "file "+f.GetName())
	}
	for _, m := range f.MessageType {
		names = append(names, join(f.GetPackage(), m.GetName()))
	}
	for _, e := range f.EnumType {
		names = append(names, join(f.GetPackage(), e.GetName()))
	}
	for _, s := range f.Service {
		names = append(names, join(f.GetPackage(), s.GetName()))
	}
	return names
}

// isFeatures says whether a file is one of a language's features, which comes
// with protobuf and which only its code generators read.
func isFeatures(name string) bool {
	return strings.HasPrefix(name, "google/protobuf/") && strings.HasSuffix(name, "_features.proto")
}

type merger struct {
	ctx        context.Context
	elements   []*element
	byName     map[string]*element
	extensions map[string]bool
	packages   map[string]bool // and what these are in
	notes      map[string]string
	open       []bundle.Unresolved
	std        map[string]string // type of protobuf itself: its file
	found      map[string]bool   // files of protobuf itself that a source declares
}

func (m *merger) addUnresolved(element, input, reason string) {
	m.open = append(m.open, bundle.Unresolved{Element: element, Place: bundle.Place{File: input}, Reason: reason})
}

// An intake is a source while its declarations are entered.
type intake struct {
	input          string
	list, replaced []*element

	// by full name: a source may declare a name more than once, so each of its
	// files is its own
	own map[string]*element

	// by the name in the source, with its dot
	renamed map[string]string
}

// addSource enters a source's declarations.
func (m *merger) addSource(s *Source) {
	in := &intake{input: s.Input, own: map[string]*element{}, renamed: map[string]string{}}
	for _, f := range s.Files {
		if isFeatures(f.GetName()) {
			continue
		}
		for _, e := range elementsOf(f) {
			if m.ctx.Err() != nil {
				return
			}
			m.addElement(e, in)
		}
	}

	for _, e := range in.replaced {
		if !slices.Contains(in.list, e) {
			retarget(e.msg, in.renamed)
		}
	}
	for _, e := range in.list {
		retarget(e.msg, in.renamed)
		e.before = nil
		if _, ok := e.msg.(*descriptorpb.FieldDescriptorProto); !ok {
			m.byName[e.full()] = e
		}
		m.elements = append(m.elements, e)
	}
	for name, note := range s.Notes {
		m.notes[name] = note
	}
}

// addElement finds the place of a declaration: a free name, or that of another
// that declares the same, more or less.
func (m *merger) addElement(e *element, in *intake) {
	if file, ok := m.std[e.full()]; ok {
		m.found[file] = true
		return
	}
	if x, ok := e.msg.(*descriptorpb.FieldDescriptorProto); ok {
		key := x.GetExtendee() + " " + e.full()
		if !m.extensions[key] {
			m.extensions[key] = true
			in.list = append(in.list, e)
		}
		return
	}

	name, there := m.findPlace(e, in.own)
	switch {
	case there == nil:
	case there.subsumes(e):
		there.openEnum(e)
		return
	default: // e declares more
		if fieldsOf(there) < fieldsOf(e) {
			m.notes[name] = "A copy of it declares less."
		}
		rename(e, there.name)
		in.own[name], there.before = there, nil
		*there = *e
		in.replaced = append(in.replaced, there)
		return
	}

	if name != e.full() {
		m.notes[name], m.open = m.renamedAs(e, name, in.input)
		in.renamed["."+e.full()] = "." + name
	}
	in.own[name], e.before = e, proto.Clone(e.msg)
	rename(e, strings.TrimPrefix(name, prefixOf(e.pkg)))
	in.list = append(in.list, e)
}

// findPlace returns the name that a declaration gets, and what is there that says the
// same, or of which one says what the other does; nil where its place is free.
func (m *merger) findPlace(e *element, own map[string]*element) (string, *element) {
	name := e.full()
	for n := 2; m.ctx.Err() == nil; n++ {
		there := own[name]
		if there == nil {
			there = m.byName[name]
		}
		if there == nil && !m.packages[name] || there != nil && (there.subsumes(e) || e.covers(there)) {
			return name, there
		}
		name = fmt.Sprintf("%s_%d", e.full(), n)
	}
	return name, nil
}

// renamedAs returns the note for a declaration that cannot have its own name,
// and what is unresolved with that.
func (m *merger) renamedAs(e *element, name, input string) (string, []bundle.Unresolved) {
	note, reason := "Another shape of "+e.full()+" in "+input+".", "a second definition has another shape: it is kept as "
	if m.packages[e.full()] {
		note, reason = "Its name is "+e.full()+", which is a package's, too.", "a package has its name, too: it is kept as "
	}
	return note, append(m.open, bundle.Unresolved{Element: e.full(), Place: bundle.Place{File: input}, Reason: reason + name})
}
