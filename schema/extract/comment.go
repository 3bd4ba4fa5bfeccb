package extract

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/safetext"
)

// Field numbers in descriptor.proto. The path of a source location consists of such numbers and of indices.
const (
	fileMessages, fileEnums, fileServices, fileExtensions = 4, 5, 6, 7
	messageFields, messageNested, messageEnums            = 2, 3, 4
	messageExtensions                                     = 6
	enumValues, serviceMethods                            = 2, 2
)

// comments returns the comments in a descriptor by the full names of the commented elements. Descriptors
// contain comments if they were written by prost or by protoc --include_source_info.
func comments(f *descriptorpb.FileDescriptorProto) map[string]string {
	notes := map[string]string{}
	for _, at := range f.GetSourceCodeInfo().GetLocation() {
		// prost and protoc attach a comment behind an element as a trailing one.
		text := at.GetLeadingComments()
		if text == "" {
			text = at.GetTrailingComments()
		}
		if text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")); text == "" {
			continue
		}
		if full, ok := elementAt(f, at.GetPath()); ok {
			notes[full] = text
		}
	}
	return notes
}

// elementAt returns the full name of the element to which the path of a source location leads. ok is false if
// the file has no such element.
func elementAt(f *descriptorpb.FileDescriptorProto, path []int32) (full string, ok bool) {
	if len(path) < 2 || len(path)%2 != 0 {
		return "", false
	}
	kind, at := path[0], path[1]
	pkg, rest := f.GetPackage(), path[2:]
	switch kind {
	case fileMessages:
		if m, ok := nth(f.MessageType, at); ok {
			return inMessage(join(pkg, m.GetName()), m, rest)
		}
	case fileEnums:
		if e, ok := nth(f.EnumType, at); ok {
			return inEnum(pkg, e, rest)
		}
	case fileExtensions:
		x, ok := nth(f.Extension, at)
		return join(pkg, x.GetName()), ok && len(rest) == 0
	case fileServices:
		s, ok := nth(f.Service, at)
		if !ok || len(rest) == 0 {
			return join(pkg, s.GetName()), ok
		}
		m, ok := nth(s.Method, rest[1])
		return join(pkg, s.GetName()) + "." + m.GetName(), ok && rest[0] == serviceMethods && len(rest) == 2
	}

	return "", false
}

// inMessage is elementAt for the rest of a path within the message full.
func inMessage(full string, m *descriptorpb.DescriptorProto, path []int32) (string, bool) {
	// Each step leads to a nested message, or ends at another element.
	for len(path) > 0 {
		kind, at := path[0], path[1]
		path = path[2:]
		switch kind {
		case messageNested:
			n, ok := nth(m.NestedType, at)
			if !ok {
				return "", false
			}
			full, m = full+"."+n.GetName(), n
		case messageEnums:
			e, ok := nth(m.EnumType, at)
			if !ok {
				return "", false
			}
			return inEnum(full, e, path)
		case messageFields, messageExtensions:
			list := m.Field
			if kind == messageExtensions {
				list = m.Extension
			}
			f, ok := nth(list, at)
			return full + "." + f.GetName(), ok && len(path) == 0
		default:
			return "", false
		}
	}

	return full, true
}

// inEnum is elementAt for the rest of a path within an enum. scope is the full name of its parent, to which the
// enum's values belong.
func inEnum(scope string, e *descriptorpb.EnumDescriptorProto, path []int32) (string, bool) {
	if len(path) == 0 {
		return join(scope, e.GetName()), true
	}
	v, ok := nth(e.Value, path[1])
	return join(scope, v.GetName()), ok && path[0] == enumValues && len(path) == 2
}

// nth returns the element of a list with index i. ok is false if the index is out of range.
func nth[T any](list []*T, i int32) (*T, bool) {
	if i < 0 || int(i) >= len(list) {
		return nil, false
	}
	return list[i], true
}

// commentLines splits a comment into lines and removes characters that could end the comment or control a
// terminal.
func commentLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Map(func(c rune) rune {
			if safetext.IsUnsafe(c) && c != '\t' {
				return -1
			}
			return c
		}, strings.TrimPrefix(line, " "))
		lines = append(lines, strings.TrimRight(line, " \t"))
	}
	return lines
}
