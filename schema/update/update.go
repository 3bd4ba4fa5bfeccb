// Package update brings hand-written .proto files up to date with what a source
// says, and changes nothing else of them: what is new is spliced into the text
// in the file's own formatting, and every byte outside of it stays.
//
// The work is done in two passes over each source: first names that were
// placeholders, with all that refers to them; then what is new, and marks of
// what is gone. After each, the files are compiled.
//
// Source: RESEARCH.md#updates
package update

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
	"unwire/schema/compare"
)

// A Source is definitions with where they come from.
type Source struct {
	Name      string // as evidence names it: extraction, traffic, probe
	Certainty string // of what it says: reported, inferred or assumed
	Version   string // of the client, "" if unknown
	Date      string // 2006-01-02
	Schema    *schema.Schema
	// Guessed says that types, labels and the names of types are inferred from
	// bytes: they never contradict what stands in a file, unless no bytes fit both.
	Guessed bool
	// Complete says that what is not in the source is gone.
	Complete bool
	// Known maps full names of the source's messages to those of the files,
	// where they are the same type by another name.
	Known map[string]string
	// Conflicts are what the source contradicts beyond its definitions.
	Conflicts []Change
	// Left is what the source tells of fields that cannot be declared.
	Left []string
	// Fits names, by the full names of the source's fields, all types that its
	// bytes can have, where that is known of a guess: a placeholder's type that is
	// none of them is replaced.
	Fits map[string][]string
	// Spelled says that names were read in lowerCamelCase only: one that a file
	// spells in another way is no other name.
	Spelled bool
	// Fault is the error to end with where a part of the source was not read.
	Fault error
}

// Options tunes an update. The zero value asks before a real name or a type is
// replaced: a conflict is listed.
type Options struct {
	// a source's name replaces another
	TakeNames bool

	// a source's type or label replaces another that the same bytes fit
	TakeTypes bool
}

// An Op says what a change does.
type Op string

const (
	Add      Op = "add"
	Rename   Op = "rename"
	Retype   Op = "retype"
	Relabel  Op = "relabel"
	LastSeen Op = "last seen"
	Conflict Op = "conflict"
)

// A Change is one thing that an update does, or that it does not do before
// somebody decides: a conflict.
type Change struct {
	Op Op `json:"change"`

	// full name, of what is renamed the one it has so far
	Element string              `json:"element"`
	Kind    compare.ElementKind `json:"kind"`
	Number  int32               `json:"number,omitempty"`
	Old     string              `json:"old,omitempty"`
	New     string              `json:"new,omitempty"`
	File    string              `json:"file,omitempty"`
	Source  string              `json:"source"`
	Note    string              `json:"note,omitempty"`
}

// A File is a file that an update changes.
type File struct {
	Name   string
	Before string // "" of a new one
	After  string
	New    bool
}

// A Result is an update that was worked out and is not applied.
type Result struct {
	Files   []File // in path order, without those that stay as they are
	Changes []Change
	// Evidence is the text of the evidence file afterwards.
	Evidence string
}

// Conflicts returns the changes that are not made.
func (r *Result) Conflicts() []Change {
	var list []Change
	for _, c := range r.Changes {
		if c.Op == Conflict {
			list = append(list, c)
		}
	}
	return list
}

// Run works out the update of files, given by their paths with their text, by
// sources in their order. evidence is the text of the evidence file, "" if
// there is none.
//
// Shape: running it on its own result changes nothing.
// Errors: files that do not compile, with file, line and column; an evidence
// file that cannot be read, with the line.
func Run(files map[string]string, evidence string, from []Source, o Options) (*Result, error) {
	now := maps.Clone(files)
	if now == nil {
		now = map[string]string{}
	}
	have, err := schema.FromTexts(now)
	if err != nil {
		return nil, err
	}
	log, err := readLog(evidence)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	for i := range from {
		renamed := map[string]bool{}
		for _, pass := range []func(*merge) error{(*merge).names, (*merge).additions} {
			m := &merge{have: have, src: &from[i], o: o, log: log, docs: map[string]*document{}, texts: now, renamed: renamed}
			m.pair()
			if err := pass(m); err != nil {
				return nil, err
			}
			r.Changes = append(r.Changes, m.changes...)
			next := m.apply()
			if len(next) == 0 {
				continue
			}
			maps.Copy(now, next)
			after, err := schema.FromTexts(now)
			if err != nil {
				return nil, fmt.Errorf("update: the files would not compile with what %s says, so they stay as they are: %w", from[i].Name, err)
			}
			have = after
		}
		r.Changes = append(r.Changes, from[i].Conflicts...)
		log.sawAll(&from[i])
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before, old := files[name]; !old || before != now[name] {
			r.Files = append(r.Files, File{Name: name, Before: before, After: now[name], New: !old})
		}
	}
	r.Evidence = log.String()
	return r, nil
}

// A merge is one pass of one source over the files.
type merge struct {
	have  *schema.Schema
	src   *Source
	o     Options
	log   *evidenceLog
	texts map[string]string

	// parsed files that this pass looked into
	docs map[string]*document

	// types: the source's, the files'
	pairs map[protoreflect.FullName]protoreflect.FullName
	back  map[protoreflect.FullName]protoreflect.FullName

	// of the files
	enums map[protoreflect.FullName]protoreflect.EnumDescriptor

	// symbols of the files, and those to be added
	haveAll map[protoreflect.FullName]bool
	changes []Change

	// fields whose name was a placeholder until now
	renamed map[string]bool

	// new types of the source
	placed map[protoreflect.FullName]*place
	order  []protoreflect.FullName

	// imports that each file has or gets
	paths map[string][]string
}

func (m *merge) note(c Change) {
	c.Source = m.src.Name
	if c.Op == Conflict && slices.Contains(m.changes, c) {
		return // of a method's request and response
	}
	m.changes = append(m.changes, c)
}

func (m *merge) conflict(d protoreflect.Descriptor, number int32, old, now, note string) {
	m.note(Change{Op: Conflict, Element: elementName(d), Kind: kindOf(d), Number: number, Old: old, New: now, Note: note, File: d.ParentFile().Path()})
}

// apply returns the texts of the files that the pass changed.
func (m *merge) apply() map[string]string {
	next := map[string]string{}
	for name, d := range m.docs {
		if text := d.apply(); text != m.texts[name] || d.fresh {
			next[name] = text
		}
	}
	return next
}

// elementName is a full name, of an enum's value with the enum in it.
func elementName(d protoreflect.Descriptor) string {
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
		return string(v.Parent().FullName()) + "." + string(v.Name())
	}
	return string(d.FullName())
}

func kindOf(d protoreflect.Descriptor) compare.ElementKind {
	switch d.(type) {
	case protoreflect.MethodDescriptor:
		return compare.MethodElement
	case protoreflect.ServiceDescriptor:
		return compare.ServiceElement
	case protoreflect.MessageDescriptor:
		return compare.MessageElement
	case protoreflect.EnumDescriptor:
		return compare.EnumElement
	case protoreflect.OneofDescriptor:
		return compare.OneofElement
	case protoreflect.EnumValueDescriptor:
		return compare.ValueElement
	}
	return compare.FieldElement
}

func isWellKnown(file string) bool { return strings.HasPrefix(file, "google/protobuf/") }
