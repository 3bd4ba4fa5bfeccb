// Package wellknown has the definitions of services that many servers offer, whatever else
// they serve, and of the messages in which gRPC and Connect report errors:
//
//	grpc.health.v1            Health
//	grpc.reflection.v1        ServerReflection, and that of v1alpha
//	grpc.channelz.v1          Channelz
//	google.rpc                Status, Code and the error details
//
// They stand behind whatever definitions traffic is read by (schema.Schema.SetBase), since
// they are the same everywhere. The package is for commands; Schema is all of it.
//
// Source: wellknown.binpb has the descriptors of google.golang.org/grpc and
// google.golang.org/genproto/googleapis/rpc, as their generated code has them, which would
// bring a gRPC server and client into the program. The test writes and compares it. NOTICE
// has the licence.
package wellknown

import (
	_ "embed"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
)

//go:embed wellknown.binpb
var descriptors []byte

// Schema returns the definitions. They are linked once.
var Schema = sync.OnceValue(func() *schema.Schema {
	var set descriptorpb.FileDescriptorSet
	err := proto.Unmarshal(descriptors, &set)
	var s *schema.Schema
	if err == nil {
		s, err = schema.FromDescriptorSet(&set)
	}
	if err != nil {
		// The test links the same bytes.
		panic(fmt.Sprintf("wellknown: the embedded descriptors: %v", err))
	}
	return s
})
