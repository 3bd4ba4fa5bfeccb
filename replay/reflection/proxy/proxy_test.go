package proxy

import (
	"context"
	"errors"
	"io"
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
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/outbound"
	"unwire/schema"
)

// definitions declare two services, an extension, and the same type in two files.
var definitions = map[string]string{
	"a.proto": `syntax = "proto2"; package a.v1; import "google/protobuf/timestamp.proto"; import "more.proto";
message M { optional google.protobuf.Timestamp t = 1; optional more.N n = 2; extensions 100 to 200; message In { extend M { optional string inner = 101; } } }
extend M { optional string outer = 100; }
service S { rpc Do(M) returns (M); }
service R { rpc Do(M) returns (M); }`,
	"more.proto": `syntax = "proto3"; package more; message N { enum E { ZERO = 0; } E e = 1; }`,
}

// start serves a Proxy in front of h over HTTP/1 and HTTP/2 without TLS, and returns its URL and a client of HTTP/2.
func start(t testing.TB, h http.Handler, o Options) (string, *http.Client) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	serve := func(h http.Handler) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.Protocols = protocols
		s.Start()
		t.Cleanup(s.Close)
		return s.URL
	}
	s, err := schema.FromTexts(definitions)
	if err != nil {
		t.Fatal(err)
	}
	if o.Schema = s; h != nil {
		if o.To, err = url.Parse(serve(h)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	return serve(p), &http.Client{Transport: &http.Transport{Protocols: only}}
}

// TestReflection: a client of reflection finds services, types that are only imported, nested names and extensions.
func TestReflection(t *testing.T) {
	base, client := start(t, http.NotFoundHandler(), Options{})
	for name, options := range map[string][]connect.ClientOption{"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "Connect": nil} {
		t.Run(name, func(t *testing.T) {
			s := grpcreflect.NewClient(client, base, options...).NewStream(t.Context())
			defer s.Close() //nolint:errcheck // the answers are compared
			services, err := s.ListServices()
			if want := []protoreflect.FullName{"a.v1.R", "a.v1.S"}; err != nil || !slices.Equal(services, want) {
				t.Errorf("services %v, %v, want %v", services, err, want)
			}
			for _, name := range []protoreflect.FullName{"a.v1.S", "a.v1.S.Do", "a.v1.M.t", "a.v1.M.In.inner", "more.N.E", "more.N.ZERO", "google.protobuf.Timestamp"} {
				files, err := s.FileContainingSymbol(name)
				if err != nil || len(files) == 0 {
					t.Errorf("%s: %d files, %v", name, len(files), err)
				}
			}
			if _, err := s.FileContainingSymbol("a.v1.Missing"); !grpcreflect.IsReflectionStreamBroken(err) && connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("a name that is not declared: %v", err)
			}
			numbers, err := s.AllExtensionNumbers("a.v1.M")
			slices.Sort(numbers)
			if err != nil || !slices.Equal(numbers, []protoreflect.FieldNumber{100, 101}) {
				t.Errorf("extensions %v, %v", numbers, err)
			}
			if files, err := s.FileContainingExtension("a.v1.M", 101); err != nil || files[0].GetName() != "a.proto" {
				t.Errorf("extension 101: %v, %v", files, err)
			}
		})
	}
}

// TestForward: the server receives method, path, headers and body of a request as the client sent them, over the same
// version of HTTP, and the client the answer with its trailers.
func TestForward(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-End")
		w.Header().Set("X-Got", strings.Join([]string{r.Proto, r.Method, r.RequestURI, r.Header.Get("X-Own"), r.Header.Get("X-Forwarded-For"), r.Header.Get("User-Agent")}, "|"))
		_, _ = w.Write(body)
		w.Header().Set("X-End", "over")
	})
	base, two := start(t, h, Options{})
	for version, client := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{}}, "HTTP/2.0": two} {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", base+"/a%2Fb/c?x=1;y", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Own", "mine")
		r.Header.Set("User-Agent", "tester")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		got, want := resp.Header.Get("X-Got"), version+"|PUT|/a%2Fb/c?x=1;y|mine||tester"
		if err != nil || string(body) != "body" || got != want || resp.Trailer.Get("X-End") != "over" {
			t.Errorf("%s: %q, %q, trailers %v, %v; want %q", version, body, got, resp.Trailer, err, want)
		}
	}
}

// TestAnswerBeforeEnd: a server may begin its answer before the request has ended, over both versions of HTTP.
func TestAnswerBeforeEnd(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_ = c.Flush()
		_, _ = io.Copy(w, r.Body)
	})
	base, two := start(t, h, Options{})
	for version, client := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{}}, "HTTP/2.0": two} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		body, rest := io.Pipe()
		defer rest.Close() //nolint:errcheck // ends the request if there is no answer
		r, err := http.NewRequestWithContext(ctx, "POST", base+"/x", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		_, _ = io.WriteString(rest, "rest")
		_ = rest.Close()
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != "rest" || err != nil {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

// TestOtherSites: pages of other sites, and of names that lead to this machine, are refused.
func TestOtherSites(t *testing.T) {
	reached := 0
	base, _ := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), Options{})
	for name, c := range map[string]struct {
		host, origin string
		status       int
	}{
		"client":          {"", "", 200},
		"localhost":       {"localhost:80", "", 200},
		"page of here":    {"", "http://localhost:3000", 200},
		"DNS rebinding":   {"evil.example", "", 403},
		"other page":      {"", "https://evil.example", 403},
		"page of a file":  {"", "null", 403},
		"name with a dot": {"127.0.0.1.evil.example", "", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", base+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = c.host; c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.status)
		}
	}
	if reached != 3 {
		t.Errorf("%d requests reached the server, want 3", reached)
	}
}

// TestGone: if the server cannot be reached, clients get an error in their protocol, and Answered the reason.
func TestGone(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := &url.URL{Scheme: "http", Host: ln.Addr().String()}
	_ = ln.Close()
	answers := make(chan Answer, 10)
	base, client := start(t, nil, Options{To: gone, Answered: func(a Answer) { answers <- a }})
	for name, options := range map[string][]connect.ClientOption{"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "Connect": nil} {
		_, err := grpcreflect.NewClient(client, base+"/below", options...).NewStream(t.Context()).ListServices()
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "unwire reflection: ") {
			t.Errorf("%s: %v", name, err)
		}
		if a := <-answers; a.Err == nil || a.Reflection || !strings.HasPrefix(a.Path, "/below/") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	resp, err := http.Post(base, "text/plain", nil) //nolint:noctx // no RPC protocol
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestNew: what cannot be offered is an error before anything listens.
func TestNew(t *testing.T) {
	bare, err := schema.FromTexts(map[string]string{"a.proto": `syntax = "proto3"; message A {}`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Schema: bare, To: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}); !errors.Is(err, ErrNoService) {
		t.Errorf("without a service: %v", err)
	}
	if _, err := New(Options{Schema: bare, To: &url.URL{Scheme: "https", Host: "api.example"}}); !errors.Is(err, outbound.ErrRefused) {
		t.Errorf("another host: %v", err)
	}
}

// TestSameName: files that declare the same name are all offered.
func TestSameName(t *testing.T) {
	var files []protoreflect.FileDescriptor
	for path, text := range map[string]string{"one.proto": `message A { optional string x = 1; } service S {}`, "two.proto": `message A {} message B {}`} {
		s, err := schema.FromTexts(map[string]string{path: `syntax = "proto2"; package p; ` + text})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, s.Files...)
	}
	r := resolve(schema.FromFiles(files...))
	for _, name := range []protoreflect.FullName{"p.A", "p.B", "p.S"} {
		if _, err := r.FindDescriptorByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, f := range files {
		if _, err := r.FindFileByPath(f.Path()); err != nil {
			t.Errorf("%s: %v", f.Path(), err)
		}
	}
}

// BenchmarkForward measures a small unary request through the proxy over HTTP/2.
func BenchmarkForward(b *testing.B) {
	base, client := start(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), Options{})
	for b.Loop() {
		resp, err := client.Post(base+"/a.v1.S/Do", "application/proto", strings.NewReader("message")) //nolint:noctx // a benchmark
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
