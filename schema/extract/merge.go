package extract

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
	"unwire/schema/jsonname"
)

// A Set is what inputs declare together, as files that link.
type Set struct {
	// ours, each after what it imports
	Files []*descriptorpb.FileDescriptorProto

	// those of protobuf itself, in such an order
	Imports []*descriptorpb.FileDescriptorProto

	// by full name: comments
	Notes map[string]string

	// what the merging itself had to leave open
	Unresolved []bundle.Unresolved
}

// An element is what a file declares at its top level.
type element struct {
	pkg, name string
	syntax    syntax

	// DescriptorProto, EnumDescriptorProto, ServiceDescriptorProto or FieldDescriptorProto
	msg     proto.Message
	options *descriptorpb.FileOptions

	// it was renamed, where it was
	before proto.Message

	// within a cycle of packages
	layer int

	// of a script's code, not of a descriptor
	guessed bool
}

func (e *element) full() string { return join(e.pkg, e.name) }

func join(pkg, name string) string {
	if pkg == "" {
		return name
	}
	return pkg + "." + name
}

// A syntax is what of a file decides how its declarations are read.
type syntax struct {
	name     string // proto2, proto3 or editions
	edition  descriptorpb.Edition
	features string // of the file's options, serialized
}

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
			m.add(v)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.settle()
	set, err := m.set()
	if err != nil && ctx.Err() == nil && m.dropBroken() {
		m.settle()
		set, err = m.set()
	}
	if err != nil && ctx.Err() == nil && m.dropClashing() {
		m.settle()
		set, err = m.set()
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

func (m *merger) unresolved(element, input, reason string) {
	m.open = append(m.open, bundle.Unresolved{Element: element, Place: bundle.Place{File: input}, Reason: reason})
}

// add enters a source's declarations.
func (m *merger) add(s *Source) {
	// A source may declare a name more than once, so each of its files is its own.
	var list, replaced []*element
	renamed, own := map[string]string{}, map[string]*element{}
	for _, f := range s.Files {
		if isFeatures(f.GetName()) {
			continue
		}
		for _, e := range elementsOf(f) {
			if m.ctx.Err() != nil {
				return
			}
			if file, ok := m.std[e.full()]; ok {
				m.found[file] = true
				continue
			}
			if x, ok := e.msg.(*descriptorpb.FieldDescriptorProto); ok {
				key := x.GetExtendee() + " " + e.full()
				if !m.extensions[key] {
					m.extensions[key] = true
					list = append(list, e)
				}
				continue
			}
			name, there := m.slot(e, own)
			switch {
			case there == nil:
			case there.says(e):
				there.open(e)
				continue
			default: // e says more
				if fieldsOf(there) < fieldsOf(e) {
					m.notes[name] = "A copy of it declares less."
				}
				rename(e, there.name)
				own[name], there.before = there, nil
				*there = *e
				replaced = append(replaced, there)
				continue
			}
			if name != e.full() {
				m.notes[name], m.open = m.renamedAs(e, name, s.Input)
				renamed["."+e.full()] = "." + name
			}
			own[name], e.before = e, proto.Clone(e.msg)
			rename(e, strings.TrimPrefix(name, prefixOf(e.pkg)))
			list = append(list, e)
		}
	}
	for _, e := range replaced {
		if !slices.Contains(list, e) {
			retarget(e.msg, renamed)
		}
	}
	for _, e := range list {
		retarget(e.msg, renamed)
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

// slot returns the name that a declaration gets, and what is there that says the
// same, or of which one says what the other does; nil where its place is free.
func (m *merger) slot(e *element, own map[string]*element) (string, *element) {
	name := e.full()
	for n := 2; m.ctx.Err() == nil; n++ {
		there := own[name]
		if there == nil {
			there = m.byName[name]
		}
		if there == nil && !m.packages[name] || there != nil && (there.says(e) || e.covers(there)) {
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

// says says whether what e declares is the same, or covers the other.
func (e *element) says(other *element) bool {
	msg := e.msg
	if e.before != nil {
		msg = e.before
	}
	return sameShape(msg, other.msg) || e.covers(other)
}

// fieldsOf is how many fields a declared message has.
func fieldsOf(e *element) int {
	d, _ := e.msg.(*descriptorpb.DescriptorProto)
	return len(d.GetField())
}

// open makes an enum an open one where another declaration of it is: messages of
// proto3 can refer to no other, and those of proto2 to both.
func (e *element) open(other *element) {
	if _, ok := e.msg.(*descriptorpb.EnumDescriptorProto); ok && e.syntax.name == "proto2" && other.syntax.name == "proto3" {
		e.syntax, e.options = other.syntax, other.options
	}
}

func prefixOf(pkg string) string {
	if pkg == "" {
		return ""
	}
	return pkg + "."
}

// elementsOf are the declarations of a file, as copies.
func elementsOf(f *descriptorpb.FileDescriptorProto) []*element {
	f = proto.Clone(f).(*descriptorpb.FileDescriptorProto)
	syn := syntax{name: f.GetSyntax(), edition: f.GetEdition()}
	if syn.name == "" {
		syn.name = "proto2"
	}
	if fs := f.GetOptions().GetFeatures(); fs != nil {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(fs)
		if err == nil {
			syn.features = string(data)
		}
	}
	opts := f.GetOptions()
	if opts != nil {
		opts.UninterpretedOption = nil
	}
	var list []*element
	enter := func(name string, msg proto.Message) {
		list = append(list, &element{
			pkg: f.GetPackage(), name: name, syntax: syn, msg: msg, options: opts, guessed: isGuessed(f.GetName()),
		})
	}
	for _, d := range f.MessageType {
		complete(d)
		enter(d.GetName(), d)
	}
	for _, d := range f.EnumType {
		enter(d.GetName(), d)
	}
	for _, d := range f.Service {
		enter(d.GetName(), d)
	}
	for _, d := range f.Extension {
		completeField(d)
		enter(d.GetName(), d)
	}
	return list
}

// complete adds what a descriptor may leave out and a compiler writes.
func complete(d *descriptorpb.DescriptorProto) {
	for _, f := range d.Field {
		completeField(f)
	}
	for _, f := range d.Extension {
		completeField(f)
	}
	for _, n := range d.NestedType {
		complete(n)
	}
}

func completeField(f *descriptorpb.FieldDescriptorProto) {
	if f.JsonName == nil {
		f.JsonName = proto.String(jsonname.Of(f.GetName()))
	}
}

// sameShape says whether two declarations are the same.
func sameShape(a, b proto.Message) bool {
	if a.ProtoReflect().Descriptor() != b.ProtoReflect().Descriptor() {
		return false
	}
	if x, ok := a.(*descriptorpb.DescriptorProto); ok {
		return proto.Equal(canonical(x), canonical(b.(*descriptorpb.DescriptorProto)))
	}
	return proto.Equal(a, b)
}

// canonical orders what has no order.
func canonical(d *descriptorpb.DescriptorProto) *descriptorpb.DescriptorProto {
	d = proto.Clone(d).(*descriptorpb.DescriptorProto)
	sortNested(d)
	return d
}

func sortNested(d *descriptorpb.DescriptorProto) {
	sort.SliceStable(d.Field, func(i, j int) bool { return d.Field[i].GetNumber() < d.Field[j].GetNumber() })
	sort.SliceStable(d.NestedType, func(i, j int) bool { return d.NestedType[i].GetName() < d.NestedType[j].GetName() })
	sort.SliceStable(d.EnumType, func(i, j int) bool { return d.EnumType[i].GetName() < d.EnumType[j].GetName() })
	for _, n := range d.NestedType {
		sortNested(n)
	}
}

func rename(e *element, name string) {
	if name == e.name {
		return
	}
	suffix := strings.TrimPrefix(name, e.name)
	switch d := e.msg.(type) {
	case *descriptorpb.DescriptorProto:
		d.Name = &name
	case *descriptorpb.EnumDescriptorProto:
		d.Name = &name
		for _, v := range d.Value { // they stand in the package's scope
			v.Name = proto.String(v.GetName() + suffix)
		}
	case *descriptorpb.ServiceDescriptorProto:
		d.Name = &name
	}
	e.name = name
}

// retarget replaces names of types, and of what is nested in them.
func retarget(msg proto.Message, renamed map[string]string) {
	if len(renamed) == 0 {
		return
	}
	eachType(msg, func(_ string, name **string, _ *descriptorpb.FieldDescriptorProto) {
		for at := len(**name); at > 0; at = strings.LastIndexByte((**name)[:at], '.') {
			if to, ok := renamed[(**name)[:at]]; ok {
				*name = proto.String(to + (**name)[at:])
				return
			}
		}
	})
}

// eachType calls f with every name of a type in a declaration; where it is of a
// field, with that too. path is the element's name below the declaration.
func eachType(msg proto.Message, f func(path string, name **string, field *descriptorpb.FieldDescriptorProto)) {
	field := func(path string, d *descriptorpb.FieldDescriptorProto) {
		if d.TypeName != nil {
			f(join(path, d.GetName()), &d.TypeName, d)
		}
		if d.Extendee != nil {
			f(join(path, d.GetName()), &d.Extendee, nil)
		}
	}
	var message func(path string, d *descriptorpb.DescriptorProto)
	message = func(path string, d *descriptorpb.DescriptorProto) {
		for _, x := range d.Field {
			field(path, x)
		}
		for _, x := range d.Extension {
			field(path, x)
		}
		for _, n := range d.NestedType {
			message(join(path, n.GetName()), n)
		}
	}
	switch d := msg.(type) {
	case *descriptorpb.DescriptorProto:
		message("", d)
	case *descriptorpb.FieldDescriptorProto:
		field("", d)
	case *descriptorpb.ServiceDescriptorProto:
		for _, x := range d.Method {
			f(x.GetName(), &x.InputType, nil)
			f(x.GetName(), &x.OutputType, nil)
		}
	}
}

// typesIn calls f with the full name of every type that a declaration declares.
func typesIn(e *element, f func(full string)) {
	var message func(full string, d *descriptorpb.DescriptorProto)
	message = func(full string, d *descriptorpb.DescriptorProto) {
		f(full)
		for _, n := range d.NestedType {
			message(full+"."+n.GetName(), n)
		}
		for _, n := range d.EnumType {
			f(full + "." + n.GetName())
		}
	}
	switch d := e.msg.(type) {
	case *descriptorpb.DescriptorProto:
		message(e.full(), d)
	case *descriptorpb.EnumDescriptorProto:
		f(e.full())
	}
}
