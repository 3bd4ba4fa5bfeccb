package update

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// markGone marks a field, a value or a method that a complete source has no more.
func (m *merge) markGone(h protoreflect.Descriptor, dd *decl, d *document, number int32) {
	if dd == nil || isMarked(d.comments(dd)) {
		return
	}
	mark := m.lastSeen()
	t := d.tail(dd.end)
	_, below, _ := d.commentBelow(t.at)
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

// markGoneTypes marks the types and services that a complete source has no more and
// an earlier version of it had; a type's mark stands for those within it. What
// the source never had is left alone: a client ships only what it uses.
func (m *merge) markGoneTypes() {
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

// sourceHas reports whether a type or service of the files is in the source.
func (m *merge) sourceHas(h protoreflect.Descriptor) bool {
	if s, ok := h.(protoreflect.ServiceDescriptor); ok {
		return m.src.Schema.Service(string(s.FullName())) != nil
	}
	return m.back[h.FullName()] != ""
}

// isGroup reports whether h is declared by a field, which has the mark.
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

// markGoneBlock marks what stands between braces, at the opening one.
func (m *merge) markGoneBlock(h protoreflect.Descriptor, b *block) {
	d := b.doc
	line, rest, _ := strings.Cut(d.text[b.open+1:], "\n")
	if isMarked(d.text[b.name.end:b.open] + line) {
		return
	}
	mark := m.lastSeen()
	if strings.TrimSpace(line) == "" && !strings.HasPrefix(strings.TrimSpace(rest), "/") {
		d.replace(span{b.open + 1, b.open + 1}, "  // "+mark)
	} else {
		d.replace(span{b.open, b.open}, "/* "+mark+" */ ")
	}
	m.recordGone(h, d, 0, mark)
}

func isMarked(text string) bool { return strings.Contains(text, "last seen ") }

// lastSeen is the text of a mark.
func (m *merge) lastSeen() string {
	mark := "last seen before this source"
	if last := m.log.lastVersion(m.src); last != "" {
		mark = "last seen in " + last
	} else if m.src.Version != "" {
		mark = "last seen before " + m.src.Version
	}
	return strings.NewReplacer("*/", "* /", "\n", " ", "\r", " ").Replace(mark)
}

func (m *merge) recordGone(h protoreflect.Descriptor, d *document, number int32, mark string) {
	m.addChange(Change{Op: opLastSeen, Element: elementName(h), Kind: kindOf(h), Number: number, New: mark, File: d.name})
	if _, listed := m.log.at[elementName(h)]; listed {
		m.log.appendNote(elementName(h), mark)
	}
}
