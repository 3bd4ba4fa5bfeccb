package model

import "slices"

// The names of the code generators, as in reports.
const (
	// FormES1 is the code generator protoc-gen-es 1.
	FormES1 = "protobuf-es 1"
	// FormES2 is the code generator protoc-gen-es 2.
	FormES2 = "protobuf-es 2"
	// FormConnect is the code generator protoc-gen-connect-es 1, for services.
	FormConnect = "connect-es"
	// FormPBTS is the code generator protobuf-ts.
	FormPBTS = "protobuf-ts"
	// FormReflection is the reflection JSON of protobufjs.
	FormReflection = "protobufjs reflection"
	// FormPBJS is the code generator of protobufjs for static code.
	FormPBJS = "protobufjs"
	// FormTSProto is the code generator ts-proto.
	FormTSProto = "ts-proto"
	// FormJSPB is the code generator protoc-gen-js, whose output uses google-protobuf.
	FormJSPB = "google-protobuf"
	// FormGRPC are the code generators for service definitions of gRPC.
	FormGRPC = "grpc"
	// FormPBF is the code generator of the library pbf.
	FormPBF = "pbf"
	// FormCompact is the code generator of the npm package protocol-buffers.
	FormCompact = "protocol-buffers"
	// FormProtons is the code generator protons.
	FormProtons = "protons"
	// FormGenTS is the code generator protoc-gen-ts.
	FormGenTS = "protoc-gen-ts"
	// FormBuilder is the JSON of protobufjs up to version 5.
	FormBuilder = "protobufjs builder"
)

// detail ranks code generators by how much of the definitions their output retains; more is better.
func detail(form string) int {
	return slices.Index([]string{FormPBF, FormCompact, FormProtons, FormTSProto, FormGenTS, FormJSPB, FormGRPC, FormPBJS, FormPBTS, FormBuilder, FormReflection, FormConnect, FormES1}, form)
}
