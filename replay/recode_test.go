package replay

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/schema"
)

// testSchema knows the test server's methods.
func testSchema(t *testing.T) *schema.Schema {
	t.Helper()
	const wordsType, numberType = ".google.protobuf.StringValue", ".google.protobuf.UInt32Value"
	method := func(name, in, out string, up, down bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(in), OutputType: proto.String(out),
			ClientStreaming: proto.Bool(up), ServerStreaming: proto.Bool(down),
		}
	}
	s, err := schema.FromDescriptorSet(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		{
			Name: proto.String("test.proto"), Package: proto.String("test.v1"), Syntax: proto.String("proto3"),
			Dependency: []string{"google/protobuf/wrappers.proto"},
			Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Test"), Method: []*descriptorpb.MethodDescriptorProto{
				method("Say", wordsType, wordsType, false, false), method("Count", numberType, wordsType, false, true),
				method("Issue", wordsType, wordsType, true, true),
			}}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOtherCodec: each protocol's request, sent in the other codec, gets the
// same answer, and back.
func TestOtherCodec(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{
		"proto":    nil,
		"json":     {connect.WithProtoJSON()},
		"gzip":     {connect.WithSendGzip()},
		"get":      {connect.WithHTTPGet()},
		"get json": {connect.WithHTTPGet(), connect.WithProtoJSON()},
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			to, want := CodecJSON, `"hello"`
			if strings.Contains(name, "json") {
				to, want = CodecProto, "\n\x05hello"
			}
			options := l.withToken(l.options())
			options.Schema, options.Codec = testSchema(t), to
			r := l.replay(l.say("hello", o...), options)
			l.expect(r, Same, FromServer, "ok")
			is := l.answered(r.Exchange)
			if is.Codec != to {
				t.Errorf("recorded as %s", is.Codec)
			}
			for _, dir := range []captures.Direction{captures.Up, captures.Down} {
				if f := is.Frame(dir, 0); f == nil || string(f.Data) != want {
					t.Errorf("%s: %+v", dir, f)
				}
			}
			options.Edits = l.options("set =other").Edits
			if to == CodecProto {
				options.Edits = l.options("set 1=other").Edits
			}
			r = l.replay(l.say("hello", o...), options)
			l.expect(r, Differs, FromServer, "ok")
		})
	}
}

// TestOtherCodecOfStream: each message of a stream is compared in the codec that
// was asked for.
func TestOtherCodecOfStream(t *testing.T) {
	for _, protocol := range [][]connect.ClientOption{nil, {connect.WithGRPC()}} {
		l := newLab(t)
		c := connect.NewClient[number, words](l.http, l.server.URL+"/test.v1.Test/Count", protocol...)
		stream, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.UInt32(7)))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() {
		}
		o := l.options()
		o.Schema, o.Codec = testSchema(t), CodecJSON
		r := l.replay(l.recorded(), o)
		l.expect(r, Same, FromServer, "ok")
		if f := l.answered(r.Exchange).Frame(captures.Down, 6); f == nil || string(f.Data) != `"message 6 "` {
			t.Errorf("%+v", f)
		}
	}
}

// TestOtherCodecWithoutDefinitions: the body has to be given.
func TestOtherCodecWithoutDefinitions(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	o := l.withToken(l.options())
	o.Codec = CodecJSON
	store := l.store
	if _, err := newPlan(t.Context(), store, id, o); err == nil || !strings.Contains(err.Error(), "client frame 0 cannot be converted to json: the definitions lack the type of the message") {
		t.Errorf("%v", err)
	}
	o.Message = []byte(`"hello"`)
	r := l.replay(id, o)
	if r.Comparison != Differs || len(r.Diff) != 1 || r.Diff[0].Path != "down/0" { // a bare string is no object to compare
		t.Errorf("%+v", r)
	}
	o.Schema, o.Message = testSchema(t), nil
	data := []byte{0x0a, 1, 'x', 0x10, 1}
	if _, err := recodeMessage(data, o.Schema.Method("test.v1.Test", "Say").Input(), CodecJSON); err == nil || !strings.Contains(err.Error(), "StringValue") {
		t.Errorf("an unknown field: %v", err)
	}
}
