package extract

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
)

// Merge combines the definitions of several sources to one consistent set. Equal declarations with the same
// name become one. If declarations with the same name differ, the later ones are renamed.
//
// Errors: the context's, and declarations that do not link.
func Merge(ctx context.Context, sources ...*Source) (*Set, error) {
	m := &merger{
		ctx: ctx, byName: map[string]*element{}, notes: map[string]string{}, standardTypes: standardTypes(), standardFound: map[string]bool{},
		extensions: map[string]bool{}, packages: map[string]bool{},
	}
	for _, s := range sources {
		for _, f := range s.Files {
			// A declaration must not have the name of a package or of a parent of one.
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

	// If the files do not link, a bad declaration is dropped rather than all of them.
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

// versions splits a source that contains several versions of a file into several sources, so that the
// declarations of one version refer to each other.
func versions(s *Source) []*Source {
	var list []*Source
	var names []map[string]bool
	files := slices.Clone(s.Files)

	// Descriptors come first, because they are more reliable than scripts.
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
		// The file goes to the first version that does not have it yet.
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

// declaredIn returns the names by which two files are recognized as versions of the same file: the name of the
// file and the full names of its types.
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

// isFeatures reports whether a file, given its name, declares the features of a programming language. Such
// files ship with protobuf and are used by code generators only.
func isFeatures(name string) bool {
	return strings.HasPrefix(name, "google/protobuf/") && strings.HasSuffix(name, "_features.proto")
}

// A merger is the state of merging several sources.
type merger struct {
	// ctx cancels the merge.
	ctx context.Context
	// elements are all declarations merged so far.
	elements []*element
	// byName maps full names to declarations.
	byName map[string]*element
	// extensions has the extended message and full name of each extension, so that none is added twice.
	extensions map[string]bool
	// packages has the names of all packages and of their parents.
	packages map[string]bool
	// notes maps the full names of elements to their comments.
	notes map[string]string
	// unresolved lists the elements that could not be merged completely, with the reason.
	unresolved []model.Unresolved
	// standardTypes maps the full name of each type that ships with protobuf to the file that declares it.
	standardTypes map[string]string
	// standardFound has the files of protobuf that occur in a source.
	standardFound map[string]bool
}

// addUnresolved records an element that could not be merged completely. input is the path of its source.
func (m *merger) addUnresolved(element, input, reason string) {
	m.unresolved = append(m.unresolved, model.Unresolved{Element: element, Place: model.Place{File: input}, Reason: reason})
}

// A sourceMerge is the state of adding the definitions of one source to the merger.
type sourceMerge struct {
	// input is the path from which the source was read.
	input string
	// list has the elements that are new. replaced has existing elements whose declaration was replaced by a
	// more complete one.
	list, replaced []*element

	// own has the elements of this source by their final full name.
	own map[string]*element

	// renamed maps the old full names of renamed elements to the new ones, with a leading dot.
	renamed map[string]string
}

// addSource adds the declarations of a source to the merged ones.
func (m *merger) addSource(s *Source) {
	in := &sourceMerge{input: s.Input, own: map[string]*element{}, renamed: map[string]string{}}
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

	// References are corrected when all new names of the source are known.
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

// addElement adds a declaration: as a new one, in place of an existing one that declares less, or not at all if
// an existing one subsumes it.
func (m *merger) addElement(e *element, in *sourceMerge) {
	// Types that protobuf ships are imported, not declared again.
	if file, ok := m.standardTypes[e.full()]; ok {
		m.standardFound[file] = true
		return
	}

	// Extensions are identified by the extended message and the name.
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

	// The new declaration declares more.
	default:
		if fieldsOf(there) < fieldsOf(e) {
			m.notes[name] = "The source has a copy with fewer elements."
		}
		rename(e, there.name)
		in.own[name], there.before = there, nil
		*there = *e
		in.replaced = append(in.replaced, there)
		return
	}

	// The name is used by something else, so this declaration gets a number.
	if name != e.full() {
		m.notes[name], m.unresolved = m.renamedAs(e, name, in.input)
		in.renamed["."+e.full()] = "." + name
	}
	in.own[name], e.before = e, proto.Clone(e.msg)
	rename(e, strings.TrimPrefix(name, prefixOf(e.pkg)))
	in.list = append(in.list, e)
}

// findPlace returns the final full name for a declaration, with a number appended if its name is in use. If an
// existing declaration with that name includes it or is included in it, that one is returned, too. own are the
// elements of the same source.
func (m *merger) findPlace(e *element, own map[string]*element) (string, *element) {
	name := e.full()
	for n := 2; m.ctx.Err() == nil; n++ {
		// The source's own declarations come first, so that its references stay within it.
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

// renamedAs returns the comment for a declaration that gets the new name name, and m.unresolved with that
// declaration appended.
func (m *merger) renamedAs(e *element, name, input string) (string, []model.Unresolved) {
	note, reason := "Another shape of "+e.full()+" in "+input+".", "another definition with this name has other fields, so extract named this one "
	if m.packages[e.full()] {
		note, reason = "Its name is "+e.full()+", which is also the name of a package.", "a package has the same name, so extract named this definition "
	}
	return note, append(m.unresolved, model.Unresolved{Element: e.full(), Place: model.Place{File: input}, Reason: reason + name})
}
