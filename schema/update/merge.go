package update

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// An updatePass is one pass over the user's .proto files in which the definitions of one source are merged.
// Parameters called w are declarations of the source ("wanted"), those called h declarations of the files
// ("have").
type updatePass struct {
	// have are the user's files in compiled form, as before this pass.
	have *schema.Schema
	// src is the source whose definitions are merged.
	src *Source
	// o are the options of the update.
	o Options
	// log is the parsed evidence file, which records the sources of each element.
	log *evidenceLog
	// texts has the contents of the user's files by path.
	texts map[string]string

	// docs are the files that this pass has parsed, by path.
	docs map[string]*document

	// pairs maps the types of the source to their counterparts in the user's files.
	pairs map[protoreflect.FullName]protoreflect.FullName
	// reversePairs maps the types of the user's files to their counterparts in the source.
	reversePairs map[protoreflect.FullName]protoreflect.FullName

	// enums are the enums of the user's files by full name.
	enums map[protoreflect.FullName]protoreflect.EnumDescriptor

	// usedNames has all full names that are declared in the user's files or were added.
	usedNames map[protoreflect.FullName]bool
	// changes are the changes made so far, and the conflicts.
	changes []Change

	// renamed has the full names of the fields whose name was a placeholder until now. Their types may be
	// placeholders, too.
	renamed map[string]bool

	// placed are the new types by their full name in the source.
	placed map[protoreflect.FullName]*placement
	// order has the names of the new types in the order in which they are inserted.
	order []protoreflect.FullName

	// paths has the imports of each file, including added ones.
	paths map[string][]string
}

// addChange appends a change to the result.
func (m *updatePass) addChange(c Change) {
	c.Source = m.src.Name
	if c.Op == Conflict && slices.Contains(m.changes, c) {
		// The same type can be used by a method's request and response.
		return
	}
	m.changes = append(m.changes, c)
}

// addConflict appends a conflict about the declaration d of the user's files. old and now are the two states.
func (m *updatePass) addConflict(d protoreflect.Descriptor, number int32, old, now, note string) {
	m.addChange(Change{Op: Conflict, Element: elementName(d), Kind: kindOf(d), Number: number, Old: old, New: now, Note: note, File: d.ParentFile().Path()})
}

// apply returns the new texts, by path, of the files that changed.
func (m *updatePass) apply() map[string]string {
	next := map[string]string{}
	for name, d := range m.docs {
		if text := d.apply(); text != m.texts[name] || d.isNew {
			next[name] = text
		}
	}
	return next
}

// document returns a file of the user in parsed form, or nil if it cannot be parsed.
func (m *updatePass) document(name string) *document {
	if d := m.docs[name]; d != nil {
		return d
	}
	// Files are parsed on first use: most sources touch a few of them.
	d, err := parse(name, m.texts[name])
	if err != nil {
		return nil
	}
	m.docs[name] = d
	return d
}

// blockOf returns the text of a message, enum, service or oneof of the user's files, or nil.
func (m *updatePass) blockOf(h protoreflect.Descriptor) *block {
	d := m.document(h.ParentFile().Path())
	if d == nil {
		return nil
	}
	return d.blocks[string(h.FullName())]
}
