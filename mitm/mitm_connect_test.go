package mitm

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/mitm/launch"
)

type (
	text    = wrapperspb.StringValue
	textReq = connect.Request[text]
	textRes = connect.Response[text]
)

const echoService = "/unwire.test.v1.EchoService/"

// newEchoServer is a real Connect server with a method of each kind.
func newEchoServer() http.Handler {
	mux := http.NewServeMux()
	handle := func(name string, h http.Handler) { mux.Handle(echoService+name, h) }
	handle("Unary", connect.NewUnaryHandler(echoService+"Unary", func(_ context.Context, r *textReq) (*textRes, error) {
		res := connect.NewResponse(wrapperspb.String("echo " + r.Msg.GetValue()))
		res.Header().Set("X-Head", "h")
		res.Trailer().Set("X-Tail", "t")
		return res, nil
	}))
	handle("Fail", connect.NewUnaryHandler(echoService+"Fail", func(_ context.Context, r *textReq) (*textRes, error) {
		return nil, failure(r.Msg.GetValue())
	}))
	handle("Download", connect.NewServerStreamHandler(echoService+"Download", func(_ context.Context, r *textReq, s *connect.ServerStream[text]) error {
		s.ResponseTrailer().Set("X-Tail", "t")
		for i := range 5 {
			if err := s.Send(wrapperspb.String(fmt.Sprint(r.Msg.GetValue(), " ", i))); err != nil {
				return err
			}
		}
		return nil
	}))
	handle("FailLater", connect.NewServerStreamHandler(echoService+"FailLater", func(_ context.Context, r *textReq, s *connect.ServerStream[text]) error {
		if err := s.Send(wrapperspb.String("first")); err != nil {
			return err
		}
		return failure(r.Msg.GetValue())
	}))
	handle("Upload", connect.NewClientStreamHandler(echoService+"Upload", func(_ context.Context, s *connect.ClientStream[text]) (*textRes, error) {
		var all []string
		for s.Receive() {
			all = append(all, s.Msg().GetValue())
		}
		return connect.NewResponse(wrapperspb.String(strings.Join(all, "+"))), s.Err()
	}))
	handle("Chat", connect.NewBidiStreamHandler(echoService+"Chat", func(_ context.Context, s *connect.BidiStream[text, text]) error {
		for {
			m, err := s.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(wrapperspb.String("ack " + m.GetValue())); err != nil {
				return err
			}
		}
	}))
	return mux
}

func failure(why string) error {
	err := connect.NewError(connect.CodeFailedPrecondition, errors.New("no: "+why))
	if d, detailErr := connect.NewErrorDetail(structpb.NewStringValue("because " + why)); detailErr == nil {
		err.AddDetail(d)
	}
	err.Meta().Set("X-Meta", "m")
	return err
}

// A wire is what a server saw of one request and sent in return.
type wire struct{ up, down bytes.Buffer }

// A wiretap keeps the bodies of the requests that name themselves.
type wiretap struct {
	http.Handler
	mu    sync.Mutex
	wires map[string]*wire
}

const caseHeader = "X-Case"

func (t *wiretap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := new(wire)
	t.mu.Lock()
	t.wires[r.Header.Get(caseHeader)] = x
	t.mu.Unlock()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, &x.up), r.Body}
	t.Handler.ServeHTTP(&teeWriter{w, &x.down}, r)
}

type teeWriter struct {
	http.ResponseWriter
	down *bytes.Buffer
}

func (w *teeWriter) Write(p []byte) (int, error) {
	w.down.Write(p)
	return w.ResponseWriter.Write(p)
}
func (w *teeWriter) Flush()                      { w.ResponseWriter.(http.Flusher).Flush() }
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newTappedEcho(tb testing.TB) (*httptest.Server, *wiretap) {
	tap := &wiretap{Handler: newEchoServer(), wires: make(map[string]*wire)}
	origin := newTLSOrigin(tb, true, tap)
	origin.TLS.NextProtos = []string{"h2", "http/1.1"}
	return origin, tap
}

// A naming client puts the case's name into each request.
type naming struct {
	*http.Client
	name string
}

func (n naming) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set(caseHeader, n.name)
	return n.Client.Do(r)
}

// converse makes a call of each kind and writes down what came back.
func converse(ctx context.Context, c *http.Client, prefix, url string, opts []connect.ClientOption) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	client := func(method, name string) *connect.Client[text, text] {
		return connect.NewClient[text, text](naming{c, prefix + "/" + name}, url+echoService+method, opts...)
	}
	meta := func(h http.Header) string { return h.Get("X-Head") + h.Get("X-Tail") + h.Get("X-Meta") }
	fail := func(what string, err error) {
		var e *connect.Error
		if !errors.As(err, &e) {
			say("%s: %v", what, err)
			return
		}
		say("%s: %v %q meta %q", what, e.Code(), e.Message(), meta(e.Meta()))
		for _, d := range e.Details() {
			say("  detail %s %x", d.Type(), d.Bytes())
		}
	}
	unary := func(method, name, value string) {
		res, err := client(method, name).CallUnary(ctx, connect.NewRequest(wrapperspb.String(value)))
		if err != nil {
			fail(name, err)
			return
		}
		say("%s: %d bytes %.20q, header %q, trailer %q", name, len(res.Msg.GetValue()), res.Msg.GetValue(), meta(res.Header()), meta(res.Trailer()))
	}
	download := func(method string) {
		s, err := client(method, method).CallServerStream(ctx, connect.NewRequest(wrapperspb.String("d")))
		if err != nil {
			fail(method, err)
			return
		}
		for s.Receive() {
			say("%s: %q", method, s.Msg().GetValue())
		}
		if s.Err() != nil {
			fail(method, s.Err())
		}
		say("%s: trailer %q", method, meta(s.ResponseTrailer()))
		_ = s.Close()
	}
	unary("Unary", "Unary", "hello")
	unary("Unary", "Big", strings.Repeat("big ", 100_000))
	unary("Fail", "Fail", "x")
	download("Download")
	download("FailLater")
	up := client("Upload", "Upload").CallClientStream(ctx)
	for i := range 3 {
		_ = up.Send(wrapperspb.String(fmt.Sprint(i)))
	}
	if res, err := up.CloseAndReceive(); err != nil {
		fail("Upload", err)
	} else {
		say("Upload: %q", res.Msg.GetValue())
	}
	chat := client("Chat", "Chat").CallBidiStream(ctx)
	for i := range 20 {
		if err := chat.Send(wrapperspb.String(fmt.Sprint(i))); err != nil {
			fail("Chat", err)
			break
		}
		m, err := chat.Receive()
		if err != nil {
			fail("Chat", err)
			break
		}
		say("Chat: %q", m.GetValue())
	}
	_ = chat.CloseRequest()
	if _, err := chat.Receive(); !errors.Is(err, io.EOF) {
		fail("Chat's end", err)
	}
	_ = chat.CloseResponse()
	return out.String()
}

const callsInConversation = 7

// TestConnectGo: connect-go's clients get the same answers and send the same
// bytes with the proxy as without, and what is recorded is these bytes.
func TestConnectGo(t *testing.T) {
	t.Parallel()
	gzip := connect.WithSendGzip()
	for name, opts := range map[string][]connect.ClientOption{
		"Connect":       nil,
		"Connect gzip":  {gzip},
		"Connect JSON":  {connect.WithProtoJSON()},
		"gRPC":          {connect.WithGRPC()},
		"gRPC gzip":     {connect.WithGRPC(), gzip},
		"gRPC-Web":      {connect.WithGRPCWeb()},
		"gRPC-Web gzip": {connect.WithGRPCWeb(), gzip},
	} {
		t.Run(name, func(t *testing.T) {
			origin, tap := newTappedEcho(t)
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			want := converse(ctx, direct(t, origin, true), "direct", origin.URL, opts)
			got := converse(ctx, b.client(true), "proxy", origin.URL, opts)
			if got != want {
				t.Errorf("through the proxy:\n%s\ndirectly:\n%s", got, want)
			}
			if n := strings.Count(want, "Chat: "); n != 20 {
				t.Errorf("%d rounds of chat:\n%s", n, want)
			}
			tap.compare(t, b, callsInConversation)
		})
	}
}

// compare holds the recorded bytes against those that the server saw, and both
// against those of the direct calls.
func (tap *wiretap) compare(t *testing.T, b *testProxy, n int) {
	t.Helper()
	recorded := b.recorded(n)
	tap.mu.Lock()
	defer tap.mu.Unlock()
	for _, ex := range recorded {
		name := ex.RequestHeaders.Get(caseHeader)
		_, call, _ := strings.Cut(name, "/")
		via, straight := tap.wires[name], tap.wires["direct/"+call]
		if via == nil || straight == nil {
			t.Errorf("no call named %q at the server", name)
			continue
		}
		if !bytes.Equal(via.up.Bytes(), straight.up.Bytes()) || !bytes.Equal(via.down.Bytes(), straight.down.Bytes()) {
			t.Errorf("%s: the server saw other bytes than without the proxy", name)
		}
		if up := b.body(ex.ID, captures.Up); !bytes.Equal(up, via.up.Bytes()) {
			t.Errorf("%s: recorded %d bytes up, the server saw %d", name, len(up), via.up.Len())
		}
		if down := b.body(ex.ID, captures.Down); !bytes.Equal(down, via.down.Bytes()) {
			t.Errorf("%s: recorded %d bytes down, the server sent %d", name, len(down), via.down.Len())
		}
		if ex.Outcome != captures.Complete {
			t.Errorf("%s: outcome %q: %s", name, ex.Outcome, ex.Error)
		}
	}
}

// TestGRPCStatusIsRecorded: gRPC's verdict is in the trailers.
func TestGRPCStatusIsRecorded(t *testing.T) {
	origin, _ := newTappedEcho(t)
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	c := connect.NewClient[text, text](b.client(true), origin.URL+echoService+"Unary", connect.WithGRPC())
	if _, err := c.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("x"))); err != nil {
		t.Fatal(err)
	}
	ex := b.one()
	if ex.ResponseTrailers.Get("grpc-status") != "0" || ex.ResponseTrailers.Get("x-tail") != "t" || ex.RequestHeaders.Get("te") != "trailers" {
		t.Errorf("trailers %v, te %q", ex.ResponseTrailers, ex.RequestHeaders.Get("te"))
	}
}

// TestConnectES runs connect-es clients of both major versions on Node, directly and
// launched with their traffic captured.
func TestConnectES(t *testing.T) {
	t.Parallel()
	const node1, node2 = "testdata/node", "../replay/probe/testdata/node2"
	node := need.Node(t, node1, node2)
	set := echoDescriptors(t)
	for version, argv := range map[string][]string{
		"1": {node, node1 + "/client.mjs"},
		"2": {node, node2 + "/echo.mjs", set},
	} {
		for _, protocol := range []string{"connect", "grpc", "grpc-web", "connect-http1"} {
			t.Run(version+" "+protocol, func(t *testing.T) {
				origin, tap := newTappedEcho(t)
				argv := append(slices.Clone(argv), origin.URL, protocol)
				out, calls := tap.compareClients(t, origin, argv, "NODE_EXTRA_CA_CERTS")
				if chats := strings.Count(out, "Chat: ack"); calls < 6 || protocol != "connect-http1" && chats != 200 {
					t.Errorf("%d calls, %d rounds of chat:\n%s", calls, chats, out)
				}
			})
		}
	}
}

// TestGRPCPython is TestConnectES for Python's grpcio.
func TestGRPCPython(t *testing.T) {
	t.Parallel()
	python := need.Python(t, "grpc")
	origin, tap := newTappedEcho(t)
	argv := []string{python, "testdata/grpc_client.py", strings.TrimPrefix(origin.URL, "https://")}
	out, calls := tap.compareClients(t, origin, argv, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
	if calls != callsInConversation || strings.Count(out, "Chat: ack") != 100 || strings.Count(out, "FAILED_PRECONDITION no: ") != 2 {
		t.Errorf("%d calls:\n%s", calls, out)
	}
}

// compareClients runs a client directly, trusting the origin by a variable, and captured,
// with a name for its calls as its last argument. It compares what the client prints, and
// what is recorded with what the server saw.
func (tap *wiretap) compareClients(t *testing.T, origin *httptest.Server, argv []string, caVariable string) (out string, calls int) {
	t.Helper()
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	caFile := filepath.Join(t.TempDir(), "origin.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], append(slices.Clone(argv[1:]), "direct")...)
	cmd.Env = append(os.Environ(), caVariable+"="+caFile)
	want, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	var got bytes.Buffer
	code, err := launch.Run(ctx, launch.Options{
		Argv: append(slices.Clone(argv), "proxy"), ProxyURL: "http://" + b.addr, CAFile: b.ca.CertFile, ControlToken: controlToken,
		Stdout: &got, Stderr: &got,
	})
	if code != 0 || err != nil || got.String() != string(want) {
		t.Errorf("status %d, %v; through the proxy:\n%s\ndirectly:\n%s", code, err, got.String(), want)
	}
	calls = bytes.Count(want, []byte("\nend of "))
	tap.compare(t, b, calls)
	return string(want), calls
}

// echoDescriptors writes a descriptor set of the echo service.
func echoDescriptors(t *testing.T) string {
	t.Helper()
	const value = ".google.protobuf.StringValue"
	service := &descriptorpb.ServiceDescriptorProto{Name: proto.String("EchoService")}
	for name, streams := range map[string][2]bool{
		"Unary": {}, "Fail": {}, "Download": {false, true}, "FailLater": {false, true}, "Upload": {true, false}, "Chat": {true, true},
	} {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(value), OutputType: proto.String(value),
			ClientStreaming: proto.Bool(streams[0]), ServerStreaming: proto.Bool(streams[1]),
		})
	}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		{
			Name: proto.String("echo.proto"), Package: proto.String("unwire.test.v1"), Syntax: proto.String("proto3"),
			Dependency: []string{"google/protobuf/wrappers.proto"}, Service: []*descriptorpb.ServiceDescriptorProto{service},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "echo.binpb")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
