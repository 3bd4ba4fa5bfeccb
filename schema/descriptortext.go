package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Descriptor returns the message, enum, field, enum value, oneof, service,
// method or file of that full name, or path of a file, or nil.
func (s *Schema) Descriptor(fullName string) protoreflect.Descriptor {
	full := protoreflect.FullName(strings.TrimPrefix(fullName, "."))
	for _, f := range s.Files {
		if f.Path() == fullName {
			return f
		}
	}
	if m := s.messages[full]; m != nil {
		return m
	}
	if sd := s.services[full]; sd != nil {
		return sd
	}
	parent, last := full.Parent(), full.Name()
	if m := s.messages[parent]; m != nil {
		switch {
		case m.Fields().ByName(last) != nil:
			return m.Fields().ByName(last)
		case m.Oneofs().ByName(last) != nil:
			return m.Oneofs().ByName(last)
		}
	}
	if sd := s.services[parent]; sd != nil && sd.Methods().ByName(last) != nil {
		return sd.Methods().ByName(last)
	}
	for e := range s.Enums() {
		if e.FullName() == full {
			return e
		}
		if v := e.Values().ByName(last); v != nil && (v.FullName() == full || e.FullName() == parent) {
			return v
		}
	}
	return nil
}

// Text returns the .proto text of a file, type or service: the very text of the
// source with its comments, without the indentation that it has there; printed
// from the descriptor where there is no source. Of a field, an enum value, a
// oneof or a method it is that of what holds it.
func (s *Schema) Text(d protoreflect.Descriptor) (string, error) {
	switch d.(type) {
	case protoreflect.FieldDescriptor, protoreflect.EnumValueDescriptor, protoreflect.OneofDescriptor, protoreflect.MethodDescriptor:
		if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
			return s.Text(v.Parent())
		}
		return s.Text(d.Parent())
	}
	if text, ok := s.sourceOf(d); ok {
		return text, nil
	}
	p := protoprint.Printer{SortElements: true, Indent: "  "}
	text, err := p.PrintProtoToString(d)
	if err != nil {
		return "", fmt.Errorf("schema: print %s: %w", d.FullName(), err)
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}

// sourceOf cuts the text of d out of its file.
func (s *Schema) sourceOf(d protoreflect.Descriptor) (string, bool) {
	text, ok := s.sources[d.ParentFile().Path()]
	if !ok {
		return "", false
	}
	if _, whole := d.(protoreflect.FileDescriptor); whole {
		return text, true
	}
	l := s.locationsOf(d.ParentFile())
	loc, lines := l.of(d), l.lines
	if len(loc.Path) == 0 || loc.EndLine >= len(lines) {
		return "", false
	}
	first := loc.StartLine
	if loc.LeadingComments != "" {
		first = commentStart(lines, loc.StartLine)
	}
	cut := slices.Clone(lines[first : loc.EndLine+1])
	last := &cut[len(cut)-1]
	if rest := (*last)[min(loc.EndColumn, len(*last)):]; !isTrailing(rest) {
		*last = (*last)[:min(loc.EndColumn, len(*last))]
	}
	before := lines[loc.StartLine][:min(loc.StartColumn, len(lines[loc.StartLine]))]
	if first != loc.StartLine || strings.TrimSpace(before) == "" {
		return dedent(cut), true
	}
	// Something else is before it on the line, which may be its comment.
	if strings.ContainsFunc(before, func(r rune) bool { return r == '\t' || r >= utf8.RuneSelf }) {
		return "", false // columns are no offsets there
	}
	cut[0] = cut[0][len(before):]
	for comment := range strings.Lines(strings.TrimRight(loc.LeadingComments, "\n")) {
		cut = slices.Insert(cut, len(cut)-(loc.EndLine-loc.StartLine+1), "//"+strings.TrimRight(comment, " \t\n")+"\n")
	}
	return dedent(cut), true
}

func isTrailing(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "//")
}

// commentStart returns the first line of the comment that ends above line.
func commentStart(lines []string, line int) int {
	at := line
	for at > 0 {
		above := strings.TrimSpace(lines[at-1])
		switch {
		case strings.HasPrefix(above, "//"):
			at--
		case strings.HasSuffix(above, "*/"):
			for at--; at > 0 && !strings.Contains(lines[at], "/*"); {
				at--
			}
		default:
			return at
		}
	}
	return at
}

// dedent takes the first line's indentation off all lines that have it.
func dedent(lines []string) string {
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, indent))
	}
	return strings.TrimRight(b.String(), " \t\r\n") + "\n"
}

// Needs returns the schema's own messages and enums that d refers to, directly
// or not, in the order in which they are met. Types within d are left out.
func (s *Schema) Needs(d protoreflect.Descriptor) []protoreflect.Descriptor {
	n := needs{own: map[string]bool{}, seen: map[protoreflect.FullName]bool{d.FullName(): true}}
	for _, f := range s.Files {
		n.own[f.Path()] = true
	}
	n.addTypesOf(d)
	for i := 0; i < len(n.found); i++ {
		n.addTypesOf(n.found[i])
	}
	return n.found
}

type needs struct {
	own   map[string]bool
	seen  map[protoreflect.FullName]bool
	found []protoreflect.Descriptor
}

// addType notes a type by the outermost message that it stands in.
func (n *needs) addType(d protoreflect.Descriptor) {
	for {
		m, ok := d.Parent().(protoreflect.MessageDescriptor)
		if !ok {
			break
		}
		d = m
	}
	if d.IsPlaceholder() || n.seen[d.FullName()] || !n.own[d.ParentFile().Path()] {
		return
	}
	n.seen[d.FullName()] = true
	n.found = append(n.found, d)
}

func (n *needs) addTypesOf(d protoreflect.Descriptor) {
	switch d := d.(type) {
	case protoreflect.MessageDescriptor:
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			if f.Message() != nil && !f.Message().IsMapEntry() {
				n.addType(f.Message())
			}
			if f.Enum() != nil {
				n.addType(f.Enum())
			}
		}
		for i := range d.Messages().Len() {
			n.addTypesOf(d.Messages().Get(i)) // the entries of maps among them
		}
	case protoreflect.ServiceDescriptor:
		for i := range d.Methods().Len() {
			n.addType(d.Methods().Get(i).Input())
			n.addType(d.Methods().Get(i).Output())
		}
	case protoreflect.FileDescriptor:
		for i := range d.Messages().Len() {
			n.addTypesOf(d.Messages().Get(i))
		}
		for i := range d.Services().Len() {
			n.addTypesOf(d.Services().Get(i))
		}
	}
}
