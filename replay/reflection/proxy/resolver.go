package proxy

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/schema"
)

// A resolver finds definitions for reflection: by path, by name, and extensions by the type that they extend.
type resolver struct {
	// Types has the extensions.
	*protoregistry.Types

	// files are the files of the schema and their imports by path.
	files map[string]protoreflect.FileDescriptor

	// layers have the same files. Files that declare the same name are in different layers.
	layers []*protoregistry.Files
}

// resolve returns a resolver for the definitions of a schema.
func resolve(s *schema.Schema) *resolver {
	r := &resolver{Types: new(protoregistry.Types), files: map[string]protoreflect.FileDescriptor{}}
	for _, f := range s.Files {
		r.add(f)
	}
	return r
}

// add adds a file, its imports and their extensions.
func (r *resolver) add(f protoreflect.FileDescriptor) {
	if r.files[f.Path()] != nil || f.IsPlaceholder() {
		return
	}
	r.files[f.Path()] = f
	if !slices.ContainsFunc(r.layers, func(l *protoregistry.Files) bool { return l.RegisterFile(f) == nil }) {
		l := new(protoregistry.Files)
		_ = l.RegisterFile(f) // it is the first one
		r.layers = append(r.layers, l)
	}
	r.extensions(f.Extensions())
	r.nested(f.Messages())
	for i := range f.Imports().Len() {
		r.add(f.Imports().Get(i).FileDescriptor)
	}
}

// nested adds the extensions that messages declare.
func (r *resolver) nested(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		r.extensions(list.Get(i).Extensions())
		r.nested(list.Get(i).Messages())
	}
}

// extensions adds extensions. If two have the same number or name, the first is kept.
func (r *resolver) extensions(list protoreflect.ExtensionDescriptors) {
	for i := range list.Len() {
		_ = r.RegisterExtension(dynamicpb.NewExtensionType(list.Get(i)))
	}
}

// FindFileByPath returns the file with a path.
func (r *resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f := r.files[path]; f != nil {
		return f, nil
	}
	return nil, protoregistry.NotFound
}

// FindDescriptorByName returns the declaration with a full name.
func (r *resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	for _, l := range r.layers {
		if d, err := l.FindDescriptorByName(name); err == nil {
			return d, nil
		}
	}
	return nil, protoregistry.NotFound
}
