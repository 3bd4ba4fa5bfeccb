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

// standardTypes are the types that come with protobuf, by full name, and the
// file of each.
func standardTypes() map[string]string {
	types := map[string]string{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
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

// standardValues are the values of the enums that come with protobuf at the level
// of a package, by full name.
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

// isStandardFile says whether a file comes with protobuf.
func isStandardFile(name string) bool {
	_, err := protoregistry.GlobalFiles.FindFileByPath(name)
	return err == nil && strings.HasPrefix(name, "google/protobuf/")
}

func enterTypes(types map[string]string, path string, d protoreflect.MessageDescriptor) {
	types[string(d.FullName())] = path
	for i := range d.Messages().Len() {
		enterTypes(types, path, d.Messages().Get(i))
	}
	for i := range d.Enums().Len() {
		types[string(d.Enums().Get(i).FullName())] = path
	}
}

// standardFiles are files of protobuf itself, with all that they import.
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
