package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/pluginpb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/replay/probe/testdata/gen/opaque2"
	"unwire/replay/probe/testdata/gen/opaque3"
	"unwire/replay/probe/testdata/gen/open2"
	"unwire/replay/probe/testdata/gen/open3"
)

// A generated is a request's type as protoc-gen-go writes it.
type generated struct {
	message proto.Message
	connect func(t testing.TB, around func(http.Handler) http.Handler) *goServer
}

// of is the type of a message, with its server on connect-go.
func of[T any, P interface {
	*T
	proto.Message
}]() generated {
	return generated{P(new(T)), func(t testing.TB, around func(http.Handler) http.Handler) *goServer {
		t.Helper()
		s := &goServer{}
		var handler http.Handler = connect.NewUnaryHandler(call, func(context.Context, *connect.Request[T]) (*connect.Response[emptypb.Empty], error) {
			s.executed.Add(1)
			return connect.NewResponse(&emptypb.Empty{}), nil
		})
		if around != nil {
			handler = around(handler)
		}
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		s.url = parseURL(t, server.URL)
		return s
	}}
}

// grpc serves the type with grpc-go.
func (g generated) grpc(t testing.TB) *goServer {
	t.Helper()
	s := &goServer{}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if name, _ := grpc.MethodFromServerStream(stream); name != call {
			return errors.New("no such method")
		}
		if err := stream.RecvMsg(g.message.ProtoReflect().New().Interface()); err != nil {
			return err
		}
		s.executed.Add(1)
		return stream.SendMsg(&emptypb.Empty{})
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l) //nolint:errcheck // it ends with Stop
	t.Cleanup(server.Stop)
	s.url = parseURL(t, "http://"+l.Addr().String())
	return s
}

// generatedRequests have text first, and not at all; closed enums, required
// fields, groups, extensions, maps, lazy fields, and fields of their own type.
func generatedRequests() map[string]generated {
	return map[string]generated{
		"open proto3":     of[open3.Request](),
		"open leaf":       of[open3.Leaf](),
		"open proto2":     of[open2.Request](),
		"opaque proto3":   of[opaque3.Request](),
		"opaque proto2":   of[opaque2.Request](),
		"required":        of[open2.Needed](),
		"opaque required": of[opaque2.Needed](),
		"a file":          of[descriptorpb.FileDescriptorProto](),
		"a message":       of[descriptorpb.DescriptorProto](),
		"a generator":     of[pluginpb.CodeGeneratorRequest](),
		"an api":          of[apipb.Api](),
		"any":             of[anypb.Any](),
		"a struct":        of[structpb.Struct](),
		"a value":         of[structpb.Value](),
		"a status":        of[status.Status](),
		"an error":        of[errdetails.ErrorInfo](),
		"a quota":         of[errdetails.QuotaFailure](),
	}
}

// service is a method that has a message as its request.
func service(t testing.TB, md protoreflect.MessageDescriptor) (*descriptorpb.FileDescriptorSet, *protoregistry.Files) {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("call.proto"), Package: proto.String("probe.v1"), Syntax: proto.String("proto3"),
		Dependency: slices.Compact([]string{md.ParentFile().Path(), "google/protobuf/empty.proto"}),
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Service"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: proto.String("Call"), InputType: proto.String("." + string(md.FullName())), OutputType: proto.String(".google.protobuf.Empty")},
		}}},
	}
	fd, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	files := &protoregistry.Files{}
	if err := files.RegisterFile(fd); err != nil {
		t.Fatal(err)
	}
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}}, files
}

// told lists what was found of each field, by path and number.
func told(res *probe.Result) (out []string) {
	for _, f := range res.Fields {
		if f.Number != 0 {
			out = append(out, fmt.Sprintln(f.Path, f.Number, f.Class, f.Kind, f.Label))
		}
	}
	return out
}

// withoutExtensions takes out the extensions that the program knows: each must
// be of the class that it was found to be.
func withoutExtensions(t *testing.T, res *probe.Result, md protoreflect.MessageDescriptor) *probe.Result {
	t.Helper()
	rest := *res
	rest.Fields = nil
	for _, f := range res.Fields {
		var extension protoreflect.ExtensionType
		if of := walkKnown(md, f.Path); of != nil && f.Number > 0 && of.Fields().ByNumber(protoreflect.FieldNumber(f.Number)) == nil {
			extension, _ = protoregistry.GlobalTypes.FindExtensionByNumber(of.FullName(), protoreflect.FieldNumber(f.Number)) //nolint:errcheck // then it is none
		}
		switch {
		case extension == nil && walkKnown(md, f.Path) != nil && walk(md, f.Path) == nil: // below an extension
		case extension == nil:
			rest.Fields = append(rest.Fields, f)
		case f.Class != classOf(extension.TypeDescriptor()) || f.Label == "repeated" && !extension.TypeDescriptor().IsList():
			t.Errorf("%v is said to be %+v", extension.TypeDescriptor(), f)
		}
	}
	return &rest
}

// walkKnown is walk, and goes through extensions that the program knows.
func walkKnown(md protoreflect.MessageDescriptor, path string) protoreflect.MessageDescriptor {
	numbers, err := probe.ParsePath(path)
	if err != nil {
		return nil
	}
	for _, n := range numbers {
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(n))
		if fd == nil {
			extension, err := protoregistry.GlobalTypes.FindExtensionByNumber(md.FullName(), protoreflect.FieldNumber(n))
			if err != nil {
				return nil
			}
			fd = extension.TypeDescriptor()
		}
		if md = fd.Message(); md == nil {
			return nil
		}
	}
	return md
}

// A server with generated types shows what one with dynamic types shows, and
// nothing wrong is claimed of it.
func TestGeneratedTypes(t *testing.T) {
	for name, g := range generatedRequests() {
		md := g.message.ProtoReflect().Descriptor()
		_, files := service(t, md)
		dynamic := map[string]*goServer{"connect-go": startConnect(t, files, nil), "grpc-go": startGRPC(t, files)}
		for runtime, server := range map[string]*goServer{"connect-go": g.connect(t, nil), "grpc-go": g.grpc(t)} {
			t.Run(name+" "+runtime, func(t *testing.T) {
				o := probe.Options{To: server.url, Method: call, Type: true, Refine: true, Depth: 2, Numbers: []probe.Range{{First: 1, Last: 150}, {First: 990, Last: 1010}}, Budget: 50_000}
				res, err := oracle.Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if string(res.Runtime) != runtime || res.Stopped != "" || res.Executed != 0 || server.executed.Load() != 0 {
					t.Errorf("%s: %s %q, %d executed, %d ran", res.Runtime, res.Stopped, res.Notes, res.Executed, server.executed.Load())
				}
				compareAll(t, withoutExtensions(t, res, md), md)
				o.To = dynamic[runtime].url
				want, err := oracle.Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := told(res), told(want); !slices.Equal(a, b) {
					t.Errorf("generated: %q\ndynamic: %q", a, b)
				}
				t.Logf("%d fields in %d requests", len(told(res)), res.Requests)
			})
		}
	}
}

// TestGeneratedTextFirst probes requests whose first error is about a text field,
// which generated code does not name.
func TestGeneratedTextFirst(t *testing.T) {
	server := of[open3.Leaf]().grpc(t)
	res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call, Texts: []int32{1}, Questions: []probe.Question{
		{Number: 1, Claims: []probe.Claim{{Kind: "string"}, {Kind: "message"}}}, {Number: 3, Claims: []probe.Claim{{Kind: "message"}, {Kind: "string"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range res.Settled {
		if q.Claims[0].Verdict != probe.Confirmed || q.Claims[1].Verdict != probe.Contradicted {
			t.Errorf("%s: %q: %+v", res.Runtime, res.Notes, q)
		}
	}
	if res.Runtime != probe.GRPCGo || server.executed.Load() != 0 {
		t.Errorf("%s %q", res.Runtime, res.Notes)
	}
}

// Definitions are verified, disagreements are settled, and names are found as
// on a server with dynamic types.
func TestGeneratedTypesAgree(t *testing.T) {
	all := generatedRequests()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		md := g.message.ProtoReflect().Descriptor()
		for runtime, server := range map[string]*goServer{"connect-go": g.connect(t, nil), "grpc-go": g.grpc(t)} {
			t.Run(name+" "+runtime, func(t *testing.T) {
				o := probe.Options{To: server.url, Method: call, Type: true, Depth: 2, Budget: 20_000}
				v, sum := verify(t, probe.VerifyOptions{Options: o}, md, md)
				if v.Contradicted > 0 || string(v.Runtime) != runtime {
					t.Errorf("%s: its own definition is contradicted %d times: %+v", v.Runtime, v.Contradicted, v.Claims)
				}
				for seed := range uint64(3) {
					lie := mistakenMessage(t, md, seed)
					_, wrong := verify(t, probe.VerifyOptions{Options: o}, lie, md)
					sum.add(wrong)
					settleLie(t, o, md, lie)
				}
				if runtime == "connect-go" {
					o.Numbers, o.Names = []probe.Range{{First: 1, Last: 60}}, requestNames(md)
					res, err := oracle.Run(context.Background(), o)
					if err != nil || res.Stopped != "" {
						t.Fatalf("%v: %s", err, res.Stopped)
					}
					named, _ := checkNames(t, res, md)
					checkNested(t, res, md)
					if known := map[string]bool{"any": true, "a struct": true, "a value": true}; named < md.Fields().Len() && !known[name] {
						t.Errorf("%d of %d names", named, md.Fields().Len())
					}
				}
				if n := server.executed.Load(); n != 0 {
					t.Errorf("handlers ran %d times", n)
				}
				t.Logf("%+v", sum)
			})
		}
	}
}

// mistakenMessage is a message of the same name in definitions with mistakes.
func mistakenMessage(t *testing.T, md protoreflect.MessageDescriptor, seed uint64) protoreflect.MessageDescriptor {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(md.ParentFile())}}
	set.File[0].Extension = nil
	for i := 0; i < len(set.File); i++ { // with what those depend on
		for _, path := range set.File[i].Dependency {
			fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(set.File, func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == path }) {
				set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
			}
		}
	}
	d, err := mistaken(t, set, seed, 3).FindDescriptorByName(md.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MessageDescriptor) //nolint:forcetypeassert // it has the name of one
}

// settleLie settles what a lie and the truth disagree on.
func settleLie(t *testing.T, o probe.Options, truth, lie protoreflect.MessageDescriptor) {
	t.Helper()
	if o.Questions, o.Texts = probe.QuestionsOfDefinitions("truth", truth, "lie", lie); len(o.Questions) == 0 {
		return
	}
	res, err := oracle.Run(context.Background(), o)
	if err != nil || res.Stopped != "" {
		t.Fatalf("%v: %s", err, res.Stopped)
	}
	tally{}.settled(t, res.Settled)
}

// A request that takes any name in JSON is asked for none, and runs nothing.
func TestNamesOfAStruct(t *testing.T) {
	for _, request := range []string{"Struct", "Value"} {
		_, servers := mapServers(t, fmt.Sprintf(`
syntax = "proto3";
package probe.v1;
import "google/protobuf/struct.proto";
message Reply {}
service Service { rpc Call(google.protobuf.%s) returns (Reply); }
`, request))
		for name, start := range servers {
			to, executed := start(t)
			res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Names: []string{"fields", "one", "other"}, Numbers: []probe.Range{{First: 1, Last: 20}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range res.Fields {
				if f.Number == 0 {
					t.Errorf("%s of %s: %+v", request, name, f)
				}
			}
			if string(res.Runtime) != name || res.Executed != 0 || executed() != 0 {
				t.Errorf("%s of %s: %s, %d executed, %d ran: %s %q", request, name, res.Runtime, res.Executed, executed(), res.Stopped, res.Notes)
			}
		}
	}
}
