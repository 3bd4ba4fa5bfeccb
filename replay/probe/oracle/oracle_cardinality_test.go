package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/schema"
)

// startDeclaredGRPC serves the methods of files with grpc-go, and registers them as generated code does.
// executed counts the handlers that have received a message, or the end of a client's messages.
func startDeclaredGRPC(t testing.TB, files *protoregistry.Files) *goServer {
	t.Helper()
	s := &goServer{}
	services := map[protoreflect.FullName]*grpc.ServiceDesc{}
	for _, m := range methods(files) {
		name := m.Parent().FullName()
		if services[name] == nil {
			services[name] = &grpc.ServiceDesc{ServiceName: string(name), HandlerType: (*any)(nil)}
		}
		desc := services[name]
		if !m.IsStreamingClient() && !m.IsStreamingServer() {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: string(m.Name()), Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := decode(dynamicpb.NewMessage(m.Input())); err != nil {
					return nil, err
				}
				s.executed.Add(1)
				return dynamicpb.NewMessage(m.Output()), nil
			}})
			continue
		}
		desc.Streams = append(desc.Streams, grpc.StreamDesc{
			StreamName: string(m.Name()), ServerStreams: m.IsStreamingServer(), ClientStreams: m.IsStreamingClient(),
			Handler: func(_ any, stream grpc.ServerStream) error {
				err := stream.RecvMsg(dynamicpb.NewMessage(m.Input()))
				if err == nil || m.IsStreamingClient() && errors.Is(err, io.EOF) {
					s.executed.Add(1)
					return stream.SendMsg(dynamicpb.NewMessage(m.Output()))
				}
				return err
			},
		})
	}
	server := grpc.NewServer()
	for _, desc := range services {
		server.RegisterService(desc, struct{}{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l) //nolint:errcheck // it ends with Stop
	t.Cleanup(server.Stop)
	s.url = parseURL(t, "http://"+l.Addr().String())
	return s
}

func schemaOf(t *testing.T, set *descriptorpb.FileDescriptorSet) *schema.Schema {
	t.Helper()
	s, err := schema.FromDescriptorSet(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What connect-go and grpc-go reveal of a request without a checked string, as the table in README.md says: the ends of
// requests depend on the method and on what is declared.
func TestEndsOfGoServers(t *testing.T) {
	const all = ": 3 message, 4 repeated, 5 repeated, 7 repeated; 3: 2 repeated, 3 message"
	for _, c := range []struct {
		returns               string
		defined               bool
		onConnect, onGRPC     string
		connectNote, grpcNote string
	}{
		{"Reply", false, all, "", "unwire instead sent an expired deadline", "so unwire could not find messages"},
		{"Reply", true, all, all, "unwire instead sent an expired deadline", "two messages, so that grpc-go rejected"},
		{"stream Reply", false, "", "", "could not find messages", "could not find messages"},
		{"stream Reply", true, all, all, "two messages, so that connect-go rejected", "two messages, so that grpc-go rejected"},
	} {
		source := strings.ReplaceAll(unchecked, "KIND", "optional")
		set, files := compiled(t, strings.Replace(source, "rpc Call(Request) returns (Reply)", "rpc Call(Request) returns ("+c.returns+")", 1))
		md := methods(files)[0].Input()
		for i, server := range []*goServer{startConnect(t, files, nil), startDeclaredGRPC(t, files)} {
			name := fmt.Sprintf("%s of %s, defined %t", []string{"connect-go", "grpc-go"}[i], c.returns, c.defined)
			want, note := []string{c.onConnect, c.onGRPC}[i], []string{c.connectNote, c.grpcNote}[i]
			o := probe.Options{To: server.url, Method: call, Type: true, Depth: 1, Numbers: []probe.Range{{First: 1, Last: 40}}}
			if c.defined {
				o.Schema = schemaOf(t, set)
			}
			res, err := oracle.Run(t.Context(), o)
			if err != nil || res.Stopped != "" {
				t.Fatalf("%s: %v: %+v", name, err, res)
			}
			compareAll(t, res, md)
			if got := shapes(res); got != want || !strings.Contains(strings.Join(res.Notes, "; "), note) {
				t.Errorf("%s: %q, want %q: %q", name, got, want, res.Notes)
			}
			if n := server.executed.Load(); n != 0 || res.Executed != 0 {
				t.Errorf("%s: handlers ran %d times, %d are reported", name, n, res.Executed)
			}
		}
	}
}

// A call without messages is not sent to a method whose client streams, whose handler would run, or of which nothing is
// declared. Where the declaration is wrong, one handler runs, which is reported.
func TestCardinalityIsNotAskedOfStreams(t *testing.T) {
	source := strings.ReplaceAll(unchecked, "KIND", "optional")
	unary, _ := compiled(t, source)
	streaming, files := compiled(t, strings.Replace(source, "rpc Call(Request)", "rpc Call(stream Request)", 1))
	for name, c := range map[string]struct {
		set *descriptorpb.FileDescriptorSet
		ran int64
	}{"nothing declared": {}, "declared": {set: streaming}, "declared wrongly": {unary, 1}} {
		t.Run(name, func(t *testing.T) {
			server := startDeclaredGRPC(t, files)
			o := probe.Options{To: server.url, Method: call, Protocol: "grpc", Numbers: []probe.Range{{First: 1, Last: 40}}}
			if c.set != nil {
				o.Schema = schemaOf(t, c.set)
			}
			res, err := oracle.Run(t.Context(), o)
			if err != nil || len(res.Fields) > 0 {
				t.Errorf("%v: %+v", err, res)
			}
			if n := server.executed.Load(); n != c.ran || c.ran > int64(res.Executed) {
				t.Errorf("handlers ran %d times, %d are reported: %q", n, res.Executed, res.Stopped)
			}
		})
	}
}

// connect-go and grpc-go reveal the same fields of random services whose methods are declared, whatever is in their
// requests.
func TestGoServersRevealTheSameOfRandomServices(t *testing.T) {
	for seed := range seedsOf(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newRandomService(seed, 1+int(seed)%5, 6, 3, 2)
			files := s.files(t)
			servers := []*goServer{startConnect(t, files, nil), startDeclaredGRPC(t, files)}
			for _, method := range methods(files) {
				var results [2][]string
				for i, server := range servers {
					res, err := oracle.Run(t.Context(), probe.Options{
						To: server.url, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Refine: true, Depth: 1, Budget: 20_000,
						Numbers: numbersAsked(), Schema: schemaOf(t, s.set()),
					})
					if err != nil || res.Stopped != "" || res.Executed != 0 {
						t.Fatalf("%v: %+v", err, res)
					}
					compareAll(t, res, method.Input())
					results[i] = told(res)
				}
				if !slices.Equal(results[0], results[1]) {
					t.Errorf("%s: %q on connect-go, %q on grpc-go", method.Name(), results[0], results[1])
				}
			}
			for i, server := range servers {
				if n := server.executed.Load(); n != 0 {
					t.Errorf("server %d: handlers ran %d times", i, n)
				}
			}
		})
	}
}
