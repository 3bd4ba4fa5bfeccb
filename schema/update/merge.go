package update

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

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

func (m *merge) addChange(c Change) {
	c.Source = m.src.Name
	if c.Op == Conflict && slices.Contains(m.changes, c) {
		return // of a method's request and response
	}
	m.changes = append(m.changes, c)
}

func (m *merge) addConflict(d protoreflect.Descriptor, number int32, old, now, note string) {
	m.addChange(Change{Op: Conflict, Element: elementName(d), Kind: kindOf(d), Number: number, Old: old, New: now, Note: note, File: d.ParentFile().Path()})
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

// document returns the parsed file.
func (m *merge) document(name string) *document {
	if d := m.docs[name]; d != nil {
		return d
	}
	d, err := parse(name, m.texts[name])
	if err != nil {
		return nil
	}
	m.docs[name] = d
	return d
}

// blockOf returns the block of a message, enum, service or oneof.
func (m *merge) blockOf(h protoreflect.Descriptor) *block {
	d := m.document(h.ParentFile().Path())
	if d == nil {
		return nil
	}
	return d.blocks[string(h.FullName())]
}
