package extract

import (
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	// The files that come with protobuf, for what imports them.
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"
)

// standardTypes maps the full names of the types that ship with protobuf to the paths of their files.
func standardTypes() map[string]string {
	types := map[string]string{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		// Other files are linked into the program for other reasons.
		if !strings.HasPrefix(f.Path(), "google/protobuf/") || strings.HasSuffix(f.Path(), "_features.proto") {
			return true
		}
		for i := range f.Messages().Len() {
			enterTypes(types, f.Path(), f.Messages().Get(i))
		}
		for i := range f.Enums().Len() {
			types[string(f.Enums().Get(i).FullName())] = f.Path()
		}
		return true
	})
	return types
}

// standardValues returns the full names of the values of top-level enums that ship with protobuf.
func standardValues() map[string]bool {
	values := map[string]bool{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Enums().Len() {
			for j, list := 0, f.Enums().Get(i).Values(); isStandardFile(f.Path()) && j < list.Len(); j++ {
				values[string(list.Get(j).FullName())] = true
			}
		}
		return true
	})
	return values
}

// isStandardFile reports whether a file with this path ships with protobuf.
func isStandardFile(name string) bool {
	_, err := protoregistry.GlobalFiles.FindFileByPath(name)
	return err == nil && strings.HasPrefix(name, "google/protobuf/")
}

// enterTypes adds the full names of a message and its nested types to types, with the path of their file.
func enterTypes(types map[string]string, path string, d protoreflect.MessageDescriptor) {
	types[string(d.FullName())] = path
	for i := range d.Messages().Len() {
		enterTypes(types, path, d.Messages().Get(i))
	}
	for i := range d.Enums().Len() {
		types[string(d.Enums().Get(i).FullName())] = path
	}
}

// standardFiles returns the files with these paths, which ship with protobuf, and their imports.
func standardFiles(names map[string]bool) []*descriptorpb.FileDescriptorProto {
	all := map[string]*descriptorpb.FileDescriptorProto{}
	var visit func(f protoreflect.FileDescriptor)
	visit = func(f protoreflect.FileDescriptor) {
		if all[f.Path()] != nil {
			return
		}
		all[f.Path()] = protodesc.ToFileDescriptorProto(f)
		for i := range f.Imports().Len() {
			visit(f.Imports().Get(i).FileDescriptor)
		}
	}
	for name := range names {
		if f, err := protoregistry.GlobalFiles.FindFileByPath(name); err == nil {
			visit(f)
		}
	}
	return ordered(all)
}
