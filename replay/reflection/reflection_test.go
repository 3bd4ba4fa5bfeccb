package reflection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/grpc"
	grpcreflection "google.golang.org/grpc/reflection"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/reflection"
)

// shop are definitions in three files, of which one is imported by two ways.
var shop = map[string]string{
	"shop/base.proto": `syntax = "proto3"; package shop.v1; import "google/protobuf/timestamp.proto"; message Item { string name = 1; google.protobuf.Timestamp at = 2; }`,
	"shop/more.proto": `syntax = "proto3"; package shop.v1; import "shop/base.proto"; enum Kind { KIND_UNSPECIFIED = 0; KIND_BIG = 1; } message Box { repeated Item items = 1; map<string, Kind> kinds = 2; }`,
	"shop/shop.proto": `syntax = "proto3"; package shop.v1; import "shop/base.proto"; import "shop/more.proto"; service Shop { rpc Get(Item) returns (Box); rpc Watch(stream Item) returns (stream Box); }`,
}

// A source has the definitions for both kinds of servers.
type source struct {
	files    *protoregistry.Files
	services []string
}

func newSource(t *testing.T) *source {
	t.Helper()
	s, err := schema.FromTexts(shop)
	if err != nil {
		t.Fatal(err)
	}
	src := &source{files: &protoregistry.Files{}, services: []string{"shop.v1.Shop"}}
	for _, f := range s.Files {
		if err := src.files.RegisterFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return src
}

func (s *source) GetServiceInfo() map[string]grpc.ServiceInfo {
	info := map[string]grpc.ServiceInfo{}
	for _, name := range s.services {
		info[name] = grpc.ServiceInfo{}
	}
	return info
}

func (s *source) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f, err := s.files.FindFileByPath(path); err == nil {
		return f, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (s *source) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return s.files.FindDescriptorByName(name)
}

// connectHandlers are the two handlers of connect-go.
func (s *source) connectHandlers(versions ...string) http.Handler {
	r := grpcreflect.NewReflector(grpcreflect.NamerFunc(func() []string { return s.services }), grpcreflect.WithDescriptorResolver(s), grpcreflect.WithExtensionResolver(&protoregistry.Types{}))
	mux := http.NewServeMux()
	if slices.Contains(versions, "v1") {
		mux.Handle(grpcreflect.NewHandlerV1(r))
	}
	if slices.Contains(versions, "v1alpha") {
		mux.Handle(grpcreflect.NewHandlerV1Alpha(r))
	}
	return mux
}

// serve serves a handler by HTTP/1.1 and HTTP/2 without TLS.
func serve(t *testing.T, h http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return parse(t, server.URL)
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serveGRPC serves reflection by grpc-go.
func serveGRPC(t *testing.T, s *source, versions ...string) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	o := grpcreflection.ServerOptions{Services: s, DescriptorResolver: s, ExtensionResolver: &protoregistry.Types{}}
	if slices.Contains(versions, "v1") {
		v1.RegisterServerReflectionServer(g, grpcreflection.NewServerV1(o))
	}
	if slices.Contains(versions, "v1alpha") {
		grpc_reflection_v1alpha.RegisterServerReflectionServer(g, grpcreflection.NewServer(o))
	}
	go func() { _ = g.Serve(l) }() // it ends with Stop
	t.Cleanup(g.Stop)
	return parse(t, "http://"+l.Addr().String())
}

// Each server reports the same definitions, by the version and the protocol that it speaks.
func TestAsk(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	want, err := schema.FromTexts(shop)
	if err != nil {
		t.Fatal(err)
	}
	all := src.connectHandlers("v1", "v1alpha")
	connectOnly := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		all.ServeHTTP(w, r)
	})
	prefixed := http.NewServeMux()
	prefixed.Handle("/api/v1/", http.StripPrefix("/api/v1", all))
	for name, c := range map[string]struct {
		to                *url.URL
		version, protocol string
		requests          int
	}{
		"connect-go":         {serve(t, all), "v1", "grpc", 1},
		"connect-go v1alpha": {serve(t, src.connectHandlers("v1alpha")), "v1alpha", "grpc", 2},
		"Connect alone":      {serve(t, connectOnly), "v1", "connect", 2},
		"below a path":       {serve(t, prefixed).JoinPath("/api/v1/"), "v1", "grpc", 1},
		"grpc-go":            {serveGRPC(t, src, "v1", "v1alpha"), "v1", "grpc", 1},
		"grpc-go v1alpha":    {serveGRPC(t, src, "v1alpha"), "v1alpha", "grpc", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Ask(t.Context(), Options{To: c.to})
			if err != nil {
				t.Fatal(err)
			}
			if r.Version != c.version || r.Protocol != c.protocol || r.Requests != c.requests || !slices.Contains(r.Services, "shop.v1.Shop") || len(r.Undescribed) > 0 {
				t.Errorf("%+v", r)
			}
			got, err := r.Files.Schema(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if a, b := set(t, got), set(t, want); !proto.Equal(a, b) {
				t.Errorf("%v\nwant %v", a, b)
			}
		})
	}
}

// set are the files of definitions with their imports.
func set(t *testing.T, s *schema.Schema) *descriptorpb.FileDescriptorSet {
	t.Helper()
	data, err := s.DescriptorSet()
	list := &descriptorpb.FileDescriptorSet{}
	if err == nil {
		err = proto.Unmarshal(data, list)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.File, func(a, b *descriptorpb.FileDescriptorProto) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

// A server without reflection, one that wants a token, and one that is not there, are told
// apart, and nothing leaves the machine.
func TestRefusals(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		src.connectHandlers("v1").ServeHTTP(w, r)
	})
	locked := serve(t, guarded)
	r, err := Ask(t.Context(), Options{To: locked, Header: http.Header{"Authorization": {"Bearer sesame"}}})
	if err != nil || r.Files.Len() == 0 {
		t.Errorf("with the token: %v", err)
	}
	if _, err := Ask(t.Context(), Options{To: locked}); err == nil || errors.Is(err, reflection.ErrNone) || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("without the token: %v", err)
	}
	old := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(old.Close)
	for name, to := range map[string]*url.URL{
		"nothing there":          serve(t, http.NotFoundHandler()),
		"grpc-go without":        serveGRPC(t, src),
		"only HTTP/1.1":          parse(t, old.URL),
		"what answers otherwise": serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })),
	} {
		if _, err := Ask(t.Context(), Options{To: to}); !errors.Is(err, reflection.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Ask(t.Context(), Options{To: parse(t, "http://127.0.0.1:1")}); !errors.Is(err, outbound.ErrNotSent) {
		t.Errorf("a closed port: %v", err)
	}
	for _, to := range []string{"http://192.0.2.1", "https://example.com", "ftp://127.0.0.1"} {
		if _, err := Ask(t.Context(), Options{To: parse(t, to)}); !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// answer is what a hostile server says to a request.
type answer func(*v1.ServerReflectionRequest) *v1.ServerReflectionResponse

// serveAnswers serves reflection by a function.
func serveAnswers(t *testing.T, f answer) *url.URL {
	t.Helper()
	const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	mux := http.NewServeMux()
	mux.Handle(path, connect.NewBidiStreamHandler(path, func(ctx context.Context, s *connect.BidiStream[v1.ServerReflectionRequest, v1.ServerReflectionResponse]) error {
		for {
			q, err := s.Receive()
			if err != nil {
				return nil
			}
			r := f(q)
			if r == nil {
				<-ctx.Done()
				return ctx.Err()
			}
			if err := s.Send(r); err != nil {
				return err
			}
		}
	}))
	return serve(t, mux)
}

// listed answers the first question with these services, and the others with a file.
func listed(services int, file func(*v1.ServerReflectionRequest) *descriptorpb.FileDescriptorProto) answer {
	return func(q *v1.ServerReflectionRequest) *v1.ServerReflectionResponse {
		if _, ok := q.MessageRequest.(*v1.ServerReflectionRequest_ListServices); ok {
			list := &v1.ListServiceResponse{}
			for i := range services {
				list.Service = append(list.Service, &v1.ServiceResponse{Name: fmt.Sprintf("a.S%d", i)})
			}
			return &v1.ServerReflectionResponse{MessageResponse: &v1.ServerReflectionResponse_ListServicesResponse{ListServicesResponse: list}}
		}
		data, err := proto.Marshal(file(q))
		if err != nil {
			panic(err) // a file of the test's own
		}
		return &v1.ServerReflectionResponse{MessageResponse: &v1.ServerReflectionResponse_FileDescriptorResponse{FileDescriptorResponse: &v1.FileDescriptorResponse{FileDescriptorProto: [][]byte{data}}}}
	}
}

// Whatever a server answers, asking it ends within the bounds.
func TestHostile(t *testing.T) {
	t.Parallel()
	nested := &descriptorpb.DescriptorProto{Name: proto.String("M")}
	for range 200 {
		nested = &descriptorpb.DescriptorProto{Name: proto.String("M"), NestedType: []*descriptorpb.DescriptorProto{nested}}
	}
	for name, c := range map[string]struct {
		answer answer
		want   error
		text   string
	}{
		"endless imports": {listed(1, func(q *v1.ServerReflectionRequest) *descriptorpb.FileDescriptorProto {
			return &descriptorpb.FileDescriptorProto{Name: proto.String(q.GetFileByFilename() + "."), Dependency: []string{q.GetFileByFilename() + ".."}, Package: proto.String(strings.Repeat("a", 64<<10))}
		}), reflection.ErrLimit, ""},
		"many services": {listed(maxServices+1, nil), reflection.ErrLimit, ""},
		"deep": {listed(1, func(*v1.ServerReflectionRequest) *descriptorpb.FileDescriptorProto {
			return &descriptorpb.FileDescriptorProto{Name: proto.String("a"), MessageType: []*descriptorpb.DescriptorProto{nested}}
		}), reflection.ErrLimit, ""},
		"large": {listed(1, func(*v1.ServerReflectionRequest) *descriptorpb.FileDescriptorProto {
			return &descriptorpb.FileDescriptorProto{Name: proto.String("a"), Package: proto.String(strings.Repeat("a", maxMessage))}
		}), reflection.ErrLimit, ""},
		"no name": {listed(1, func(*v1.ServerReflectionRequest) *descriptorpb.FileDescriptorProto {
			return &descriptorpb.FileDescriptorProto{}
		}), nil, "without a name"},
		"silence": {func(*v1.ServerReflectionRequest) *v1.ServerReflectionResponse { return nil }, nil, "did not end within"},
		"nothing": {func(*v1.ServerReflectionRequest) *v1.ServerReflectionResponse { return &v1.ServerReflectionResponse{} }, reflection.ErrNone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := serveAnswers(t, c.answer)
			timeout := 20 * time.Second
			if name == "silence" {
				timeout = 300 * time.Millisecond
			}
			_, err := Ask(t.Context(), Options{To: to, Timeout: timeout})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v %q", err, c.want, c.text)
			}
		})
	}
}
