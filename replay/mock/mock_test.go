package mock

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
)

const service = "/unwire.test.v1.SessionService/"

// A fixture records a client's session with a real server, and serves the recording.
type fixture struct {
	t    testing.TB
	ca   *ca.Authority
	path string
}

// newFixture makes a folder with a CA.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	authority, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, authority, filepath.Join(dir, "session.uwc")}
}

// record runs client with the address of a reverse proxy before a real server.
func (f *fixture) record(handler http.Handler, o mitm.Options, client func(addr string)) {
	f.t.Helper()
	origin := httptest.NewUnstartedServer(handler)
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	s, err := store.Create(f.path, store.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	o.CA, o.Store, o.UpstreamRoots = f.ca, s, x509.NewCertPool()
	o.UpstreamRoots.AddCert(origin.Certificate())
	o.Reverse, _ = url.Parse(origin.URL)
	proxy, err := mitm.New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	go func() { _ = proxy.Serve(ln) }()
	client(ln.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(proxy.Shutdown(ctx), s.Close()); err != nil {
		f.t.Fatal(err)
	}
}

// mock runs client with the address of a mock of the recording, and returns what the mock did.
func (f *fixture) mock(o Options, client func(addr string)) ([]Answer, Report) {
	f.t.Helper()
	src, err := store.Open(f.path, store.ReadOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer src.Close() //nolint:errcheck // only read
	var mu sync.Mutex
	var answers []Answer
	o.CA = f.ca
	o.Answered = func(a Answer) {
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, a)
	}
	server, err := New(f.t.Context(), src, o)
	if err != nil {
		f.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	client(ln.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
		f.t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return answers, server.Report()
}

// same records a client's session, runs the client against the mock, and compares what it printed. Every recorded
// call must have answered, without remarks.
func (f *fixture) same(handler http.Handler, client func(addr string) string) []Answer {
	f.t.Helper()
	var want, got string
	f.record(handler, mitm.Options{}, func(addr string) { want = client(addr) })
	answers, report := f.mock(Options{}, func(addr string) { got = client(addr) })
	if got != want {
		f.t.Errorf("from the mock:\n%s\nfrom the server:\n%s", got, want)
	}
	if report.Refused != 0 || len(report.Unused) != 0 || report.Answered == 0 {
		f.t.Errorf("%+v", report)
	}
	for _, a := range answers {
		if !a.Complete || a.Code != "" || len(a.Notes) > 0 {
			f.t.Errorf("%s: %+v", a.Method, a)
		}
	}
	return answers
}

// httpClient is a client of one HTTP version, in clear or with TLS.
func (f *fixture) httpClient(version string, secure bool) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	tr.TLSClientConfig.RootCAs.AddCert(f.ca.Certificate)
	tr.Protocols.SetHTTP1(version == "1.1")
	tr.Protocols.SetHTTP2(version == "2" && secure)
	tr.Protocols.SetUnencryptedHTTP2(version == "2" && !secure)
	f.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// sessionServer is a real server. Its answers repeat the client's id, and have ids of its own.
func sessionServer() http.Handler {
	mux := http.NewServeMux()
	fields := func(m *structpb.Struct, more map[string]any) *structpb.Struct {
		more["id"] = m.GetFields()["id"].GetStringValue()
		out, err := structpb.NewStruct(more)
		if err != nil {
			panic(err)
		}
		return out
	}
	mux.Handle(service+"Unary", connect.NewUnaryHandler(service+"Unary", func(_ context.Context, r *connect.Request[structpb.Struct]) (*connect.Response[structpb.Struct], error) {
		text := r.Msg.GetFields()["text"].GetStringValue()
		if text == "fail" {
			return nil, connect.NewError(connect.CodeNotFound, errors.New("no such text"))
		}
		res := connect.NewResponse(fields(r.Msg, map[string]any{"text": strings.ToUpper(text), "note": "for " + r.Msg.GetFields()["id"].GetStringValue()}))
		res.Header().Set("X-Request-Id", r.Header().Get("X-Request-Id"))
		res.Trailer().Set("X-Cost", "3")
		return res, nil
	}))
	mux.Handle(service+"Count", connect.NewServerStreamHandler(service+"Count", func(_ context.Context, r *connect.Request[structpb.Struct], s *connect.ServerStream[structpb.Struct]) error {
		for n := range int(r.Msg.GetFields()["n"].GetNumberValue()) {
			if err := s.Send(fields(r.Msg, map[string]any{"n": n})); err != nil {
				return err
			}
		}
		return nil
	}))
	mux.Handle(service+"Sum", connect.NewClientStreamHandler(service+"Sum", func(_ context.Context, s *connect.ClientStream[structpb.Struct]) (*connect.Response[structpb.Struct], error) {
		sum, last := 0.0, &structpb.Struct{}
		for s.Receive() {
			last = s.Msg()
			sum += last.GetFields()["n"].GetNumberValue()
		}
		return connect.NewResponse(fields(last, map[string]any{"sum": sum})), s.Err()
	}))
	mux.Handle(service+"Talk", connect.NewBidiStreamHandler(service+"Talk", func(_ context.Context, s *connect.BidiStream[structpb.Struct, structpb.Struct]) error {
		for round := 0; ; round++ {
			m, err := s.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(fields(m, map[string]any{"round": round, "seen": m.GetFields()["round"].GetNumberValue()})); err != nil {
				return err
			}
		}
	}))
	return mux
}

// newID returns a UUID.
func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// message is a message with an id.
func message(id string, more map[string]any) *structpb.Struct {
	more["id"] = id
	m, err := structpb.NewStruct(more)
	if err != nil {
		panic(err)
	}
	return m
}

// show prints a message without the id, which differs in each run.
func show(m *structpb.Struct, id string) string {
	b, _ := protojson.Marshal(m)
	var out bytes.Buffer
	// protojson puts spaces in at random
	for _, c := range strings.ReplaceAll(string(b), id, "ID") {
		if c != ' ' {
			out.WriteRune(c)
		}
	}
	return out.String() + "\n"
}

// connectSession is a session of connect-go with calls of all kinds.
func connectSession(t *testing.T, c *http.Client, base string, bidi bool, o ...connect.ClientOption) string {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out strings.Builder
	id := newID()
	call := func(name string) *connect.Client[structpb.Struct, structpb.Struct] {
		return connect.NewClient[structpb.Struct, structpb.Struct](c, base+service+name, o...)
	}
	for _, text := range []string{"hello", "fail"} {
		req := connect.NewRequest(message(id, map[string]any{"text": text}))
		req.Header().Set("X-Request-Id", id)
		res, err := call("Unary").CallUnary(ctx, req)
		if err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		out.WriteString(show(res.Msg, id) + res.Trailer().Get("X-Cost") + strings.ReplaceAll(res.Header().Get("X-Request-Id"), id, "ID") + "\n")
	}
	count, err := call("Count").CallServerStream(ctx, connect.NewRequest(message(id, map[string]any{"n": 3})))
	if err != nil {
		t.Fatal(err)
	}
	for count.Receive() {
		out.WriteString(show(count.Msg(), id))
	}
	fmt.Fprintln(&out, count.Err())
	sum := call("Sum").CallClientStream(ctx)
	for n := range 4 {
		_ = sum.Send(message(id, map[string]any{"n": n})) // the answer tells
	}
	res, err := sum.CloseAndReceive()
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString(show(res.Msg, id))
	if bidi {
		talk := call("Talk").CallBidiStream(ctx)
		for round := range 20 {
			_ = talk.Send(message(id, map[string]any{"round": round})) // the answer tells
			m, err := talk.Receive()
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(show(m, id))
		}
		_ = talk.CloseRequest() // the answer tells
		_, err := talk.Receive()
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

// TestConnectGo has connect-go as the client, with each of its protocols over each transport.
func TestConnectGo(t *testing.T) {
	t.Parallel()
	protocols := map[string][]connect.ClientOption{
		"connect": nil, "connect JSON": {connect.WithProtoJSON()}, "connect gzip": {connect.WithSendGzip()},
		"grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
	}
	for name, o := range protocols {
		for _, version := range []string{"1.1", "2"} {
			for _, secure := range []bool{false, true} {
				if name == "grpc" && version == "1.1" {
					continue // connect-go needs HTTP/2 for gRPC
				}
				t.Run(fmt.Sprintf("%s over HTTP/%s, TLS %t", name, version, secure), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t)
					scheme := map[bool]string{false: "http://", true: "https://"}[secure]
					answers := f.same(sessionServer(), func(addr string) string {
						return connectSession(t, f.httpClient(version, secure), scheme+addr, version == "2", o...)
					})
					for _, a := range answers {
						if a.Substituted == 0 && !strings.HasSuffix(a.Method, "Unary") {
							t.Errorf("no id of the client is in %+v", a)
						}
					}
				})
			}
		}
	}
}

// TestGRPCGo has grpc-go as the client.
func TestGRPCGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.same(sessionServer(), func(addr string) string {
		conn, err := grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the session is over
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		id, out := newID(), ""
		for _, text := range []string{"hello", "fail"} {
			var res structpb.Struct
			if err := conn.Invoke(ctx, service+"Unary", message(id, map[string]any{"text": text}), &res); err != nil {
				out += err.Error() + "\n"
				continue
			}
			out += show(&res, id)
		}
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Talk")
		if err != nil {
			t.Fatal(err)
		}
		for round := range 20 {
			_ = s.SendMsg(message(id, map[string]any{"round": round})) // the answer tells
			var m structpb.Struct
			if err := s.RecvMsg(&m); err != nil {
				t.Fatal(err)
			}
			out += show(&m, id)
		}
		_ = s.CloseSend() // the answer tells
		return out + fmt.Sprint(s.RecvMsg(new(structpb.Struct)))
	})
}

// TestConnectES has connect-es on Node as the client.
func TestConnectES(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "../../mitm/testdata/node")
	for _, c := range [][2]string{{"connect", "2"}, {"connect", "1.1"}, {"grpc", "2"}, {"grpc-web", "1.1"}} {
		t.Run(c[0]+" over HTTP/"+c[1], func(t *testing.T) {
			f := newFixture(t)
			f.same(sessionServer(), func(addr string) string {
				cmd := exec.CommandContext(t.Context(), node, "../../mitm/testdata/node/session.mjs", "https://"+addr, c[0], c[1])
				cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+f.ca.CertFile)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "sum") {
					t.Errorf("%v: %s", err, out)
				}
				return string(out)
			})
		})
	}
}
