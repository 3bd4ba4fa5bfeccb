package update

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// markGone adds a comment to a field, enum value or method of the user's files that a complete source no longer
// has. The declaration is kept, because older traffic may contain it. dd is its text.
func (m *updatePass) markGone(h protoreflect.Descriptor, dd *decl, d *document, number int32) {
	if dd == nil || isMarked(d.comments(dd)) {
		return
	}
	mark := m.lastSeen()
	t := d.tail(dd.end)
	_, below, _ := d.commentBelow(t.at)
	// A comment at the end of the line must not swallow what follows, so an inline comment is used if the line
	// continues.
	if t.comment || t.inline || below {
		at := dd.semicolon.start
		text := " /* " + mark + " */"
		if dd.semicolon.end > 0 && d.text[at] == '{' {
			text = "/* " + mark + " */ "
		}
		d.replace(span{at, at}, text)
	} else {
		d.replace(span{dd.end, dd.end}, "  // "+mark)
	}
	m.recordGone(h, d, number, mark)
}

// markGoneTypes adds comments to the types and services that a complete source no longer has although an
// earlier version had them. The comment on a type covers everything inside it. Elements that the source never
// had are not changed, because a client ships only what it uses.
func (m *updatePass) markGoneTypes() {
	told := m.log.elementsOf(m.src.Name)
	mark := func(h protoreflect.Descriptor) {
		parent, nested := h.Parent().(protoreflect.MessageDescriptor)
		if !told[string(h.FullName())] || m.sourceHas(h) || nested && !m.sourceHas(parent) || isGroup(h) {
			return
		}
		if b := m.blockOf(h); b != nil {
			m.markGoneBlock(h, b)
		}
	}
	for h := range m.have.Messages() {
		mark(h)
	}
	for h := range m.have.Enums() {
		mark(h)
	}
	for h := range m.have.Services() {
		mark(h)
	}
}

// sourceHas reports whether the source has the type or service h of the user's files.
func (m *updatePass) sourceHas(h protoreflect.Descriptor) bool {
	if s, ok := h.(protoreflect.ServiceDescriptor); ok {
		return m.src.Schema.Service(string(s.FullName())) != nil
	}
	return m.reversePairs[h.FullName()] != ""
}

// isGroup reports whether the message h is declared by a group field, on which the comment is then.
func isGroup(h protoreflect.Descriptor) bool {
	parent, ok := h.Parent().(protoreflect.MessageDescriptor)
	if !ok {
		return false
	}
	for i := range parent.Fields().Len() {
		if f := parent.Fields().Get(i); f.Kind() == protoreflect.GroupKind && f.Message() == h {
			return true
		}
	}
	return false
}

// markGoneBlock adds a comment to the first line of a type or service that the source no longer has. b is its
// text.
func (m *updatePass) markGoneBlock(h protoreflect.Descriptor, b *block) {
	d := b.doc
	line, rest, _ := strings.Cut(d.text[b.open+1:], "\n")
	if isMarked(d.text[b.name.end:b.open] + line) {
		return
	}
	mark := m.lastSeen()
	// A comment line below the brace would merge with the mark.
	if strings.TrimSpace(line) == "" && !strings.HasPrefix(strings.TrimSpace(rest), "/") {
		d.replace(span{b.open + 1, b.open + 1}, "  // "+mark)
	} else {
		d.replace(span{b.open, b.open}, "/* "+mark+" */ ")
	}
	m.recordGone(h, d, 0, mark)
}

// isMarked reports whether a comment says that the element is no longer in the source.
func isMarked(text string) bool { return strings.Contains(text, "last seen ") }

// lastSeen returns the text of the comment on an element that the source no longer has. It cannot end a block
// comment.
func (m *updatePass) lastSeen() string {
	mark := "last seen before this source"
	if last := m.log.lastVersion(m.src); last != "" {
		mark = "last seen in " + last
	} else if when := cmp.Or(m.src.Version, m.src.Date); when != "" {
		mark = "last seen before " + when
	}
	return strings.NewReplacer("*/", "* /", "\n", " ", "\r", " ").Replace(mark)
}

// recordGone records in the changes and in the evidence file that the source no longer has an element. mark is
// the comment.
func (m *updatePass) recordGone(h protoreflect.Descriptor, d *document, number int32, mark string) {
	m.addChange(Change{Op: opLastSeen, Element: elementName(h), Kind: kindOf(h), Number: number, New: mark, File: d.name})
	if _, listed := m.log.lineOf[elementName(h)]; listed {
		m.log.appendNote(elementName(h), mark)
	}
}
