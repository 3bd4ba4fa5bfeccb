package edit

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/fieldpath"
)

// A NameError reports that a path names a field that the message type does not have.
type NameError struct {
	// Type is the message type that lacks the field.
	Type protoreflect.MessageDescriptor

	// Name is the field name or number in the path.
	Name string
}

// Error names the type and the missing field.
func (e *NameError) Error() string {
	return fmt.Sprintf("%s has no field %q", e.Type.FullName(), e.Name)
}

// CheckType checks an edit without applying it: whether messages of type md have the fields that the
// path names, and whether the value is valid for the field. A field number that the type lacks is no
// error.
//
// Errors: a *NameError; the reason why the value is not valid.
func (e Edit) CheckType(md protoreflect.MessageDescriptor) error {
	if err := CheckPath(e.path, md); err != nil {
		return err
	}
	if e.Op != opSet && e.Op != opAdd || e.Kind != "" {
		return nil
	}

	// The field's declaration decides about the value if the path leads to it without layers.
	var fd protoreflect.FieldDescriptor
	for i, step := range e.path {
		if i > 0 {
			md = fd.Message()
		}
		if fd = FieldOf(md, step.Name); fd == nil || step.Layers != "" {
			return nil
		}
	}
	if fd == nil || fd.IsMap() || fd.Message() != nil {
		return nil
	}
	_, err := encodeValue(kindOf(fd, false), e.Value, fd)
	if err != nil && fd.IsList() && isPackable(fd) {
		// The value may be a packed list.
		_, err = encodeValue(kindOf(fd, true), e.Value, fd)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", fd.Name(), fd.Parent().FullName(), err)
	}
	return nil
}

// CheckPath checks whether messages of type md have the fields that a path names. Steps inside an
// encoded text, a map or a well-known type are not checked, nor are steps after a wildcard.
//
// Errors: a *NameError; a path that goes on below a scalar field.
func CheckPath(path fieldpath.Path, md protoreflect.MessageDescriptor) error {
	for i, step := range path {
		if step.IsIndex() || step.Name == fieldpath.Any || step.Name == fieldpath.AnySteps || strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
			return nil
		}
		number, fd, err := fieldOf(step.Name, md)
		switch {
		case err != nil:
			return &NameError{Type: md, Name: step.Name}
		case number > 0 && fd == nil, step.Layers != "", fd.IsMap(), i == len(path)-1:
			return nil
		}
		if md = fd.Message(); md != nil {
			continue
		}
		switch fd.Kind() {
		case protoreflect.StringKind, protoreflect.BytesKind:
			return nil
		}
		return fmt.Errorf("%s: the field %s has the type %s, which has no fields", path, path[:i+1], fd.Kind())
	}
	return nil
}

// HasNames reports whether the path contains names of fields or members, and not only field numbers and
// indexes.
func (e Edit) HasNames() bool {
	return slices.ContainsFunc(e.path, func(s fieldpath.Step) bool {
		_, isNumber := s.Number()
		return !isNumber && !s.IsIndex()
	})
}
