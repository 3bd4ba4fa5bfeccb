package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// A goServer serves a schema with connect-go or grpc-go.
type goServer struct {
	url      *url.URL
	executed atomic.Int64
}

// startConnect serves with connect-go; around may be put around the handler.
func startConnect(t testing.TB, files *protoregistry.Files, around func(http.Handler) http.Handler, opts ...connect.HandlerOption) *goServer {
	t.Helper()
	s := &goServer{}
	mux := http.NewServeMux()
	for _, m := range methods(files) {
		name := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
		// The response's type is generated, so that the handler's own initializer is the request's.
		all := append([]connect.HandlerOption{
			connect.WithSchema(m),
			connect.WithRequestInitializer(func(spec connect.Spec, msg any) error {
				d, ok := msg.(*dynamicpb.Message)
				if !ok {
					return nil
				}
				md, ok := spec.Schema.(protoreflect.MethodDescriptor)
				if !ok {
					return errors.New("no schema")
				}
				*d = *dynamicpb.NewMessage(md.Input())
				return nil
			}),
		}, opts...)
		if m.IsStreamingServer() {
			mux.Handle(name, connect.NewServerStreamHandler(name, func(context.Context, *connect.Request[dynamicpb.Message], *connect.ServerStream[dynamicpb.Message]) error {
				s.executed.Add(1)
				return nil
			}, all...))
			continue
		}
		out := m.Output()
		mux.Handle(name, connect.NewUnaryHandler(name, func(context.Context, *connect.Request[dynamicpb.Message]) (*connect.Response[dynamicpb.Message], error) {
			s.executed.Add(1)
			return connect.NewResponse(dynamicpb.NewMessage(out)), nil
		}, all...))
	}
	var handler http.Handler = mux
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.url = parseURL(t, server.URL)
	return s
}

func parseURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// authenticated lets nobody in.
func authenticated() connect.HandlerOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
		return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("who are you?"))
		}
	}))
}

// startGRPC serves with grpc-go.
func startGRPC(t testing.TB, files *protoregistry.Files) *goServer {
	t.Helper()
	s := &goServer{}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(stream)
		for _, m := range methods(files) {
			if name != fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()) {
				continue
			}
			if err := stream.RecvMsg(dynamicpb.NewMessage(m.Input())); err != nil {
				return err
			}
			s.executed.Add(1)
			return stream.SendMsg(dynamicpb.NewMessage(m.Output()))
		}
		return errors.New("no such method")
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

// seenByGo reports whether protobuf-go's parser tells of a field.
func seenByGo(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.MessageKind:
		return true
	case protoreflect.BytesKind:
		return false
	}
	return f.IsList()
}

func TestGoFindsWhatTheParserTells(t *testing.T) {
	m := newSchemaMaker(3)
	for i, size := range []int{41, 12, 120} {
		m.method(fmt.Sprintf("Call%d", i), size, 1000, i == 1)
	}
	files := m.files(t)
	for name, server := range map[string]*goServer{"connect-go": startConnect(t, files, nil), "grpc-go": startGRPC(t, files)} {
		t.Run(name, func(t *testing.T) {
			for _, method := range methods(files) {
				full := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
				res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: full})
				if err != nil {
					t.Fatal(err)
				}
				v := compare(t, res, "", method.Input())
				want := 0
				text := false
				for i := range method.Input().Fields().Len() {
					f := method.Input().Fields().Get(i)
					if seenByGo(f) {
						want++
					}
					text = text || f.Kind() == protoreflect.StringKind
				}
				t.Logf("%s %s: %d of %d fields, %d can be seen, in %d requests, %d bytes", res.Runtime, full, v.found, v.fields, want, res.Requests, res.Bytes)
				if !text || v.found != want || v.classed != want || res.Stopped != "" {
					t.Errorf("found %d, want %d; text %v: %+v", v.found, want, text, res)
				}
				if res.Runtime != probe.Runtime(name) {
					t.Errorf("runtime %s", res.Runtime)
				}
				if res.Executed != 0 || server.executed.Load() != 0 {
					t.Errorf("executed: %d said, %d are", res.Executed, server.executed.Load())
				}
			}
		})
	}
}

// A bidirectional method is asked over HTTP/2, though http:// begins with 1.1.
func TestBidirectional(t *testing.T) {
	m := newSchemaMaker(3)
	m.method("Call", 41, 500, false)
	files := m.files(t)
	md := methods(files)[0]
	got := atomic.Int64{}
	mux := http.NewServeMux()
	started := atomic.Int64{}
	mux.Handle(call, connect.NewBidiStreamHandler(call, func(_ context.Context, s *connect.BidiStream[dynamicpb.Message, dynamicpb.Message]) error {
		started.Add(1)
		for {
			if _, err := s.Receive(); err != nil {
				return err
			}
			got.Add(1)
		}
	}, connect.WithSchema(md), connect.WithRequestInitializer(func(_ connect.Spec, msg any) error {
		if d, ok := msg.(*dynamicpb.Message); ok {
			*d = *dynamicpb.NewMessage(md.Input())
		}
		return nil
	})))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	res, err := oracle.Run(context.Background(), probe.Options{To: parseURL(t, server.URL), Method: call})
	if err != nil {
		t.Fatal(err)
	}
	if v := compare(t, res, "", md.Input()); v.found == 0 || res.Stopped != "" || got.Load() != 0 || res.Executed == 0 {
		t.Errorf("%d messages: %+v %+v", got.Load(), v, res)
	}
	if started.Load() != int64(res.Executed) {
		t.Errorf("%d handlers started, %d are told", started.Load(), res.Executed)
	}

	// The same where the protocol is known, so that nothing refuses HTTP/1.1.
	started.Store(0)
	res, err = oracle.Run(context.Background(), probe.Options{
		To: parseURL(t, server.URL), Method: call, Protocol: "connect-stream", HTTP2: true, ClientStreams: true,
	})
	if err != nil || res.Stopped != "" || got.Load() != 0 || res.Executed == 0 || started.Load() != int64(res.Executed) {
		t.Errorf("%v: %d messages, %d handlers started: %+v", err, got.Load(), started.Load(), res)
	}
}

// On another machine no handler is started, not even without a message, unless
// that is allowed.
func TestNoHandlerIsStartedElsewhere(t *testing.T) {
	o := probe.Options{
		To: parseURL(t, "https://192.0.2.1"), Method: call, Protocol: "connect-stream", ClientStreams: true,
		Reach: outbound.Policy{Live: true, AllowHosts: []string{"192.0.2.1"}},
	}
	if plan, err := oracle.NewPlan(&o); err != nil || len(plan.Effects) != 1 || !strings.Contains(plan.Effects[0], "without --allow-execute, unwire sends no request") {
		t.Errorf("%v: %+v", err, plan)
	}
	res, err := oracle.Run(context.Background(), o)
	if err != nil || res.Requests != 0 || !strings.Contains(res.Stopped, "--allow-execute") {
		t.Errorf("%v: %+v", err, res)
	}
}

// A text that is found without a request of its own has its name all the same.
func TestEachTextOfAGoServerIsNamed(t *testing.T) {
	m := newSchemaMaker(11)
	m.method("Call", 60, 600, false)
	files := m.files(t)
	md := methods(files)[0].Input()
	res, err := oracle.Run(context.Background(), probe.Options{To: startConnect(t, files, nil).url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for _, f := range res.Fields {
		if f.Kind != "string" || f.Path != "" {
			continue
		}
		texts++
		if fd := md.Fields().ByNumber(protoreflect.FieldNumber(f.Number)); fd == nil || f.Name != string(fd.Name()) {
			t.Errorf("%+v: it is %v", f, fd)
		}
	}
	if texts < 3 {
		t.Errorf("%d texts", texts)
	}
}
