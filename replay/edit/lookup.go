package edit

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// ValuesAt returns the values that a path leads to in a message of type md, or
// without a tree in a JSON text, as text. Where the path leads to nothing, there
// are none.
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

// FieldName returns the name of the field of a message of type md that a path
// leads to, or the path's last step where md is nil or does not have it.
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

// FieldOf returns the field of a message of type md that a number or a name
// stands for; nil if md is nil or has no such field.
func FieldOf(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	_, fd, err := fieldOf(name, md)
	if err != nil {
		return nil
	}
	return fd
}

// WithoutIndexes returns a path that leads to all elements of repeated fields
// where path leads to one.
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

// FindJSON returns the value that a path leads to in a JSON text; ok is false
// where there is none.
func FindJSON(data []byte, path string) (v jsontree.Value, ok bool) {
	p, _, err := fieldpath.Cut(path)
	if err != nil {
		return jsontree.Value{}, false
	}
	return findJSON(data, p, nil)
}

// findJSON is FindJSON for a path that is read, in the JSON of a message of type md.
func findJSON(data []byte, path fieldpath.Path, md protoreflect.MessageDescriptor) (v jsontree.Value, ok bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return jsontree.Value{}, false
	}
	at, err := jsonFind(root, path, md)
	return at.value, err == nil && at.found()
}
