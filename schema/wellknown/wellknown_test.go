package wellknown

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	channelz "google.golang.org/grpc/channelz/grpc_channelz_v1"
	health "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema"
)

var update = flag.Bool("update", false, "write wellknown.binpb anew")

// The embedded descriptors are those of the modules in go.mod.
func TestDescriptors(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range []protoreflect.FileDescriptor{
		code.File_google_rpc_code_proto, errdetails.File_google_rpc_error_details_proto, status.File_google_rpc_status_proto,
		channelz.File_grpc_channelz_v1_channelz_proto, health.File_grpc_health_v1_health_proto,
		reflection.File_grpc_reflection_v1_reflection_proto, grpc_reflection_v1alpha.File_grpc_reflection_v1alpha_reflection_proto,
	} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("wellknown.binpb", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("wellknown.binpb")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("wellknown.binpb is out of date: run 'go test ./schema/wellknown -update'")
	}
}

// The well-known services are found behind other definitions, and are not listed as theirs.
func TestBase(t *testing.T) {
	t.Parallel()
	own, err := schema.FromTexts(map[string]string{"shop.proto": `syntax = "proto3"; package shop.v1; message Item { string name = 1; } service Shop { rpc Get(Item) returns (Item); }`})
	if err != nil {
		t.Fatal(err)
	}
	own.SetBase(Schema())
	for service, rpc := range map[string]string{
		"shop.v1.Shop": "Get", "grpc.health.v1.Health": "Watch", "grpc.channelz.v1.Channelz": "GetServers",
		"grpc.reflection.v1.ServerReflection": "ServerReflectionInfo", "grpc.reflection.v1alpha.ServerReflection": "ServerReflectionInfo",
	} {
		if own.FrameType(decode.Call{Service: service, RPC: rpc}, captures.Up) == nil {
			t.Errorf("%s/%s is not known", service, rpc)
		}
	}
	for _, name := range []string{"google.rpc.Status", "google.rpc.ErrorInfo", "google.rpc.RetryInfo", "shop.v1.Item"} {
		if own.Message(name) == nil {
			t.Errorf("%s is not known", name)
		}
	}
	for md := range own.Messages() {
		if md.FullName() != "shop.v1.Item" {
			t.Errorf("%s is listed as one of the definitions", md.FullName())
		}
	}
}
