package replay

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/replay/internal/nodetest"
	"unwire/replay/live"
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
	return newLabOf(t, fmt.Sprintf("probe/testdata/node%d/calls.mjs", version))
}

func newLabOf(t *testing.T, script string) *lab {
	t.Helper()
	l := newLab(t)
	pair := l.server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	identity := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	l.server.URL = "https://127.0.0.1:" + nodetest.Serve(t, script, testService(t), identity)
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
			if r.Comparison != Rejected || r.Origin != FromServer {
				t.Errorf("a message that breaks off: %+v", r)
			}
		})
	}
}

// loopTurn records a turn with the tool loop on Node; it returns its exchanges.
func loopTurn(l *lab, o ...connect.ClientOption) (open, run int64) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	opened, err := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Say", o...).CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello")))
	if err != nil {
		l.Fatal(err)
	}
	open = l.recorded()
	stream := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Issue", o...).CallBidiStream(ctx)
	say := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			l.Fatal(err)
		}
		if err := stream.Send(wrapperspb.String(string(b))); err != nil && !errors.Is(err, io.EOF) {
			l.Fatal(err)
		}
	}
	say(map[string]any{"ticket": opened.Header().Get("x-ticket"), "prompt": "Find the words"})
	first := int64(0)
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.Fatal(err)
		}
		var q struct {
			Seq   int64
			Call  struct{ ID, Input string }
			State []byte
			Done  bool
		}
		if err := json.Unmarshal([]byte(m.GetValue()), &q); err != nil {
			l.Fatal(err)
		}
		if q.Done {
			continue
		}
		var state struct{ Shard string }
		if err := json.Unmarshal(q.State, &state); err != nil {
			l.Fatal(err)
		}
		if first == 0 {
			first = q.Seq
		}
		sum := sha256.Sum256([]byte(q.Call.Input))
		say(map[string]any{
			"stream": stream.ResponseHeader().Get("x-stream"), "call": strings.ReplaceAll(q.Call.ID, "-", ""), "ack": []int64{first, q.Seq},
			"shard": state.Shard, "digest": hex.EncodeToString(sum[:]), "matches": 3,
		})
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	return open, l.recorded()
}

// A tool loop on connect-es, whose ids are in headers, in JSON in texts and in
// JSON in base64, in both codecs: none of the capture goes out.
func TestNodeToolLoop(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{"proto": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLabOf(t, "probe/testdata/node2/loop.mjs")
			open, run := loopTurn(l, o...)
			for range 2 {
				l.expect(l.replay(run, l.options()), Rejected, FromServer, "not_found")
				first, err := live.Issuers(t.Context(), l.store, run)
				if err != nil || !slices.Equal(first, []int64{open}) {
					t.Fatalf("before it: %v, %v", first, err)
				}
				o := l.options()
				o.Issued = &live.IDs{}
				p := l.plan(open, o)
				r, err := p.Send(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.learnIDs(o.Issued)
				r = l.replay(run, o)
				l.expect(r, Differs, FromServer, "ok") // in what the tools are asked, which is random
				if r.Unsent != 0 || r.Concluded != nil || r.Sent != 5 {
					t.Errorf("%d sent, %v", r.Sent, r.Concluded)
				}
			}
		})
	}
}
