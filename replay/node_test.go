package replay

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"unwire/replay/nodetest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// testService is test.v1.Test as the Node servers of the tests have it.
func testService(t *testing.T) []byte {
	t.Helper()
	const text, number = ".google.protobuf.StringValue", ".google.protobuf.UInt32Value"
	method := func(name, in string, up, down bool) *descriptorpb.MethodDescriptorProto {
		m := &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(in), OutputType: proto.String(text), ClientStreaming: proto.Bool(up), ServerStreaming: proto.Bool(down),
		}
		if name == "Say" {
			m.Options = &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()}
		}
		return m
	}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		{
			Name: proto.String("test.proto"), Package: proto.String("test.v1"), Syntax: proto.String("proto3"), Dependency: []string{"google/protobuf/wrappers.proto"},
			Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Test"), Method: []*descriptorpb.MethodDescriptorProto{
				method("Say", text, false, false), method("Count", number, false, true), method("Join", text, true, false), method("Issue", text, true, true),
			}}},
		},
	}}
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// newNodeLab is a lab whose calls go to connect-es on Node, which has the test
// server's certificate.
func newNodeLab(t *testing.T, version int) *lab {
	t.Helper()
	l := newLab(t)
	pair := l.server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	identity := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	l.server.URL = "https://127.0.0.1:" + nodetest.Serve(t, fmt.Sprintf("probe/testdata/node%d/calls.mjs", version), testService(t), identity)
	return l
}

// What connect-es serves is sent again like what connect-go does: every kind of
// call, in both codecs, over the protocols that it speaks.
func TestNodeTransports(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			l := newNodeLab(t, version)
			for _, c := range transports() {
				t.Run(c.name, func(t *testing.T) {
					outer := l.TB
					l.TB = t
					defer func() { l.TB = outer }()
					c.again(l)
				})
			}
			id := l.say("hello")
			r := l.replay(id, l.withToken(l.options("set 1=bad")))
			l.expect(r, Rejected, FromServer, "invalid_argument")
			if len(r.Details) != 1 || r.Details[0].Type != "google.protobuf.Duration" || !strings.Contains(r.Details[0].Text, "60") {
				t.Errorf("details: %+v", r.Details)
			}
			r = l.replay(id, l.withToken(l.options("raw =0a05")))
			if r.Verdict != Rejected || r.Origin != FromServer {
				t.Errorf("a message that breaks off: %+v", r)
			}
		})
	}
}
