package edit

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// ValuesAt returns, as text, the values to which a path leads in a message of type md. t is the parsed
// message; nil means that data is JSON. The result is empty if there are none.
func ValuesAt(data []byte, t *wire.Tree, path fieldpath.Path, md protoreflect.MessageDescriptor) (out []string) {
	if t == nil {
		v, ok := findJSON(data, path, md)
		if !ok {
			return nil
		}
		return []string{v.Text()}
	}
	at, err := protoFind(t, path, md)
	if err != nil {
		return nil
	}
	for _, n := range at.nodes {
		if v, err := textOfNode(t, n, at.fd, ""); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// FieldName returns the name of the field to which a path leads in messages of type md. If md is nil or
// lacks the field, it returns the path's last step.
func FieldName(path string, md protoreflect.MessageDescriptor) string {
	steps, _, err := fieldpath.Cut(path)
	if err != nil || len(steps) == 0 {
		return ""
	}
	name := ""
	for _, s := range steps {
		fd := FieldOf(md, s.Name)
		if name, md = s.Name, nil; fd != nil {
			name, md = string(fd.Name()), fd.Message()
		}
	}
	return name
}

// FieldOf returns the field of message type md that name, a number or a name, denotes; nil if md is nil
// or lacks the field.
func FieldOf(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	_, fd, err := fieldOf(name, md)
	if err != nil {
		return nil
	}
	return fd
}

// WithoutIndexes returns a path without list indexes, so that it selects all elements of repeated
// fields.
func WithoutIndexes(path string) string {
	steps, rest, err := fieldpath.Cut(path)
	if err != nil || rest != "" {
		return path
	}
	for i := range steps {
		if !steps[i].IsIndex() {
			steps[i].Index = fieldpath.All
		}
	}
	return steps.String()
}

// findJSON returns the value to which a path leads in the JSON of a message of type md (nil if
// unknown); ok is false if there is none.
func findJSON(data []byte, path fieldpath.Path, md protoreflect.MessageDescriptor) (v jsontree.Value, ok bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return jsontree.Value{}, false
	}
	at, err := jsonFind(root, path, md)
	return at.value, err == nil && at.found()
}
