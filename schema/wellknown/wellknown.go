// Package wellknown provides the definitions of services that many servers offer, and of the messages in which
// gRPC and Connect report errors:
//
// grpc.health.v1            Health
// grpc.reflection.v1        ServerReflection, and that of v1alpha
// grpc.channelz.v1          Channelz
// google.rpc                Status, Code and the error details
//
// Commands use them in addition to the user's definitions (schema.Schema.SetBase), because they are the same for
// all servers.
//
// Source: wellknown.binpb has the descriptors of google.golang.org/grpc and
// google.golang.org/genproto/googleapis/rpc. Importing their generated code would add a gRPC server and client
// to the program. The test writes and compares the file. NOTICE has the licence.
package wellknown

import (
	_ "embed"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
)

// descriptors is a serialized FileDescriptorSet with the definitions that Schema returns.
//
//go:embed wellknown.binpb
var descriptors []byte

// Schema returns the definitions of services that many servers offer (health, reflection, channelz) and of the
// error details of gRPC and Connect (google.rpc). They are linked on the first call.
var Schema = sync.OnceValue(func() *schema.Schema {
	var set descriptorpb.FileDescriptorSet
	err := proto.Unmarshal(descriptors, &set)
	var s *schema.Schema
	if err == nil {
		s, err = schema.FromDescriptorSet(&set)
	}
	if err != nil {
		// The test links the same bytes, so this cannot happen.
		panic(fmt.Sprintf("wellknown: the embedded descriptors: %v", err))
	}
	return s
})
