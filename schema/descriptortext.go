package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Descriptor returns the declaration with the full name fullName: a message, enum, field, enum value, oneof,
// service or method. A path of a file, such as "a/b.proto", returns the file. It returns nil if the schema
// declares nothing of that name.
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

	// A field, oneof or method is found through the message or service that declares it.
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

	// protobuf puts the values of an enum in the scope that encloses the enum. The name of the enum is accepted
	// as a prefix too, because people write it so.
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

// Text returns the .proto text of a file, type or service. If the schema was loaded from source, this is the
// text of the source with its comments, without the indentation that it has there. Otherwise the text is printed
// from the descriptor. For a field, an enum value, a oneof or a method it returns the text of the declaration
// that contains it.
func (s *Schema) Text(d protoreflect.Descriptor) (string, error) {
	switch d.(type) {
	case protoreflect.FieldDescriptor, protoreflect.EnumValueDescriptor, protoreflect.OneofDescriptor, protoreflect.MethodDescriptor:
		if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
			return s.Text(v.Parent())
		}
		return s.Text(d.Parent())
	}
	if text, ok := s.sourceText(d); ok {
		return text, nil
	}
	p := protoprint.Printer{SortElements: true, Indent: "  "}
	text, err := p.PrintProtoToString(d)
	if err != nil {
		return "", fmt.Errorf("schema: %s cannot be printed: %w", d.FullName(), err)
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}

// sourceText returns the text of d as it is in the source of its file. ok is false if there is no source, or if
// the declaration shares a line with another one.
func (s *Schema) sourceText(d protoreflect.Descriptor) (string, bool) {
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

	// Code behind the declaration on its last line belongs to another declaration, but a comment there belongs
	// to this one.
	last := &cut[len(cut)-1]
	if rest := (*last)[min(loc.EndColumn, len(*last)):]; !isBlankOrComment(rest) {
		*last = (*last)[:min(loc.EndColumn, len(*last))]
	}

	before := lines[loc.StartLine][:min(loc.StartColumn, len(lines[loc.StartLine]))]
	if first != loc.StartLine || strings.TrimSpace(before) == "" {
		return dedent(cut), true
	}

	// Another declaration precedes d on its line, and the leading comment can be on that line too.
	if strings.ContainsFunc(before, func(r rune) bool { return r == '\t' || r >= utf8.RuneSelf }) {
		// The compiler counts columns in characters and expands tabs, so columns are byte offsets only in plain
		// ASCII.
		return "", false
	}

	cut[0] = cut[0][len(before):]
	for comment := range strings.Lines(strings.TrimRight(loc.LeadingComments, "\n")) {
		cut = slices.Insert(cut, len(cut)-(loc.EndLine-loc.StartLine+1), "//"+strings.TrimRight(comment, " \t\n")+"\n")
	}
	return dedent(cut), true
}

// isBlankOrComment reports whether the end of a line contains only white space and comments.
func isBlankOrComment(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "//")
}

// commentStart returns the index of the first of the comment lines directly above the line with index line.
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

// dedent joins lines and removes the indentation of the first line from all that have it.
func dedent(lines []string) string {
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, indent))
	}
	return strings.TrimRight(b.String(), " \t\r\n") + "\n"
}

// Dependencies returns the messages and enums of the schema that d refers to, directly or through other types,
// in the order in which a breadth-first search finds them. Types that are declared inside d are left out; types
// inside other messages are represented by the outermost message.
func (s *Schema) Dependencies(d protoreflect.Descriptor) []protoreflect.Descriptor {
	n := dependencySearch{own: map[string]bool{}, seen: map[protoreflect.FullName]bool{d.FullName(): true}}
	for _, f := range s.Files {
		n.own[f.Path()] = true
	}
	n.addTypesOf(d)
	for i := 0; i < len(n.found); i++ {
		n.addTypesOf(n.found[i])
	}
	return n.found
}

// A dependencySearch is the state of collecting the types to which declarations refer.
type dependencySearch struct {
	// own has the paths of the schema's files. Types of other files are not collected.
	own map[string]bool
	// seen has the full names of the collected types and of the type with which the search began.
	seen map[protoreflect.FullName]bool
	// found is the result, and also the queue of the breadth-first search.
	found []protoreflect.Descriptor
}

// addType adds d, or the outermost message that encloses d, to the result unless it was added before.
func (n *dependencySearch) addType(d protoreflect.Descriptor) {
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

// addTypesOf adds the types to which the fields, methods and nested messages of d refer.
func (n *dependencySearch) addTypesOf(d protoreflect.Descriptor) {
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
			// Map entries are nested messages as well, so that the types of map values are found here.
			n.addTypesOf(d.Messages().Get(i))
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
