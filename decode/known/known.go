// Package known has the definitions of messages that any API may use: Google's well-known types,
// google.rpc.Status and the details of errors. Package decode uses them to decode a google.protobuf.Any and gRPC
// status details without a schema.
//
// Source: decode/README.md#readings
package known

import (
	"strings"

	// The import registers the details of errors.
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"

	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// Message returns the definition of a message of google.protobuf or google.rpc, or nil. name is the full name,
// optionally after a host as in the type URL of an Any.
func Message(name string) protoreflect.MessageDescriptor {
	// type.googleapis.com/google.protobuf.Duration: the name is behind the last slash.
	name = name[strings.LastIndexByte(name, '/')+1:]
	if !strings.HasPrefix(name, "google.protobuf.") && !strings.HasPrefix(name, "google.rpc.") {
		return nil
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	md, _ := d.(protoreflect.MessageDescriptor)
	return md
}
