package model

import "slices"

// The names of the code generators, as in reports.
const (
	// FormES1 is protoc-gen-es 1.
	FormES1 = "protobuf-es 1"
	// FormES2 is protoc-gen-es 2.
	FormES2 = "protobuf-es 2"
	// FormConnect is protoc-gen-connect-es 1, which generates services.
	FormConnect = "connect-es"
	// FormPBTS is protobuf-ts.
	FormPBTS = "protobuf-ts"
	// FormReflection is the reflection JSON of protobufjs.
	FormReflection = "protobufjs reflection"
	// FormPBJS is the static code of protobufjs.
	FormPBJS = "protobufjs"
	// FormTSProto is ts-proto.
	FormTSProto = "ts-proto"
	// FormJSPB is protoc-gen-js.
	FormJSPB = "google-protobuf"
	// FormGRPC is the code generators for service definitions of gRPC.
	FormGRPC = "grpc"
	// FormPBF is pbf.
	FormPBF = "pbf"
	// FormCompact is protocol-buffers.
	FormCompact = "protocol-buffers"
	// FormProtons is protons.
	FormProtons = "protons"
	// FormGenTS is protoc-gen-ts.
	FormGenTS = "protoc-gen-ts"
	// FormBuilder is the JSON of protobufjs up to version 5.
	FormBuilder = "protobufjs builder"
)

// detail ranks code generators by how much of the definitions their output retains; more is better.
func detail(form string) int {
	return slices.Index([]string{FormPBF, FormCompact, FormProtons, FormTSProto, FormGenTS, FormJSPB, FormGRPC, FormPBJS, FormPBTS, FormBuilder, FormReflection, FormConnect, FormES1}, form)
}
