package schematest

import (
	"testing"

	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/gofeaturespb"
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

	reconstructed "unwire/proto"
	"unwire/schema"
)

// BuiltIn loads the definitions that ship with unwire, in package proto.
func BuiltIn(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), reconstructed.Files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// GoogleTypes returns the types of google/protobuf and google/rpc, and of all other generated code that is
// linked into the test.
func GoogleTypes() *schema.Schema {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		files = append(files, fd)
		return true
	})
	return schema.FromFiles(files...)
}

// SetOf returns the files of a schema as a FileDescriptorSet.
func SetOf(s *schema.Schema) *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range s.Files {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	return set
}
