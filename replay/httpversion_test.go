package replay

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/replay/outbound"
)

// newVersionServer serves the test service in some versions of HTTP, with or without TLS.
func newVersionServer(t *testing.T, h http.Handler, secure, http1, http2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(http1)
	if secure {
		s.Config.Protocols.SetHTTP2(http2)
		s.EnableHTTP2 = http2
		s.StartTLS()
		if !http1 {
			s.TLS.NextProtos = []string{"h2"}
		}
	} else {
		s.Config.Protocols.SetUnencryptedHTTP2(http2)
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// recordOver calls the method of a kind over one version of HTTP, and returns the number of the exchange.
func recordOver(l *lab, s *httptest.Server, version, kind string) int64 {
	l.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the server's certificate is of this test
	switch {
	case version == "1.1":
		tr.Protocols.SetHTTP1(true)
	case s.TLS == nil:
		tr.Protocols.SetUnencryptedHTTP2(true)
	default:
		tr.Protocols.SetHTTP2(true)
	}
	l.Cleanup(tr.CloseIdleConnections)
	l.tap.Next, l.tap.HTTP = tr, version
	defer func() { l.tap.HTTP = "" }()
	ctx := l.Context()
	switch kind {
	case "Say":
		if _, err := connect.NewClient[words, words](l.http, s.URL+"/test.v1.Test/Say").CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello"))); err != nil {
			l.Fatal(err)
		}
	case "Count":
		stream, err := connect.NewClient[number, words](l.http, s.URL+"/test.v1.Test/Count").CallServerStream(ctx, connect.NewRequest(wrapperspb.UInt32(3)))
		if err != nil {
			l.Fatal(err)
		}
		for stream.Receive() {
		}
		if stream.Err() != nil || stream.Close() != nil {
			l.Fatal(stream.Err())
		}
	case "Join":
		stream := connect.NewClient[words, words](l.http, s.URL+"/test.v1.Test/Join").CallClientStream(ctx)
		for _, word := range []string{"a", "b"} {
			if err := stream.Send(wrapperspb.String(word)); err != nil {
				l.Fatal(err)
			}
		}
		if _, err := stream.CloseAndReceive(); err != nil {
			l.Fatal(err)
		}
	default:
		url := l.server.URL
		l.server.URL = s.URL
		defer func() { l.server.URL = url }()
		return lockstep(l, kind, wrapperspb.String("begin"))
	}
	return l.recorded()
}

// Connect works over both versions of HTTP, except for streams in which both sides send at the same time.
func TestConnectOverTheOtherVersionOfHTTP(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		name          string
		secure        bool
		version, kind string
		http1, http2  bool
		want          Comparison
		used, note    string
	}{
		{"unary to 1.1", false, "2", "Say", true, false, Same, "1.1", "supports only HTTP/1.1"},
		{"server stream to 1.1", false, "2", "Count", true, false, Same, "1.1", "supports only HTTP/1.1"},
		{"client stream to 1.1", false, "2", "Join", true, false, Same, "1.1", "supports only HTTP/1.1"},
		{"bidirectional to 1.1", false, "2", "Issue", true, false, NotSent, "2", "a bidirectional stream needs HTTP/2"},
		{"unary to 2", false, "1.1", "Say", false, true, Same, "2", "supports only HTTP/2"},
		{"server stream to 2", false, "1.1", "Count", false, true, Same, "2", "supports only HTTP/2"},
		{"client stream to 2", false, "1.1", "Join", false, true, Same, "2", "supports only HTTP/2"},
		{"both versions keep 1.1", false, "1.1", "Say", true, true, Same, "1.1", ""},
		{"both versions keep 2", false, "2", "Say", true, true, Same, "2", ""},
		{"TLS, server stream to 1.1", true, "2", "Count", true, false, Same, "1.1", ""},
		{"TLS, client stream to 1.1", true, "2", "Join", true, false, Same, "1.1", ""},
		{"TLS, bidirectional to 1.1", true, "2", "Issue", true, false, NotSent, "2", ""},
		{"TLS, unary to 2", true, "1.1", "Say", false, true, Same, "2", "supports only HTTP/2"},
		{"TLS, both versions keep 1.1", true, "1.1", "Say", true, true, Same, "1.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := *l
			l.TB = t
			from := newVersionServer(t, l.server.mux, c.secure, true, true)
			id := recordOver(&l, from, c.version, c.kind)
			to := newVersionServer(t, l.server.mux, c.secure, c.http1, c.http2)
			o := l.withToken(l.options())
			o.To = mustURL(to.URL)
			o.Insecure = true
			r := l.replay(id, o)
			if r.Comparison != c.want || c.want == NotSent && r.Reason != outbound.NoHTTP2 {
				t.Fatalf("%s %s %s %q %q", r.Comparison, r.Reason, r.Code, r.Message, r.Concluded)
			}
			if got := strings.Join(r.Concluded, "; "); c.note == "" && got != "" || !strings.Contains(got, c.note) {
				t.Errorf("notes %q, want %q", got, c.note)
			}
			if ex := l.answered(r.Exchange); !c.secure && ex.HTTP != c.used {
				t.Errorf("recorded as HTTP/%s, want %s", ex.HTTP, c.used)
			}
		})
	}
}

// A server of gRPC rejects a Connect request: with status 415, as grpc-go does, or with 200 and the code
// in the headers or trailers, as servers do that read the body.
func TestConnectToServerOfGRPC(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	stream := recordOver(l, l.server.Server, "2", "Count")
	refusing := func(trailers bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			h := w.Header()
			h.Set("content-type", "application/grpc")
			prefix := ""
			if trailers {
				prefix = http.TrailerPrefix
				w.WriteHeader(http.StatusOK)
			}
			h.Set(prefix+"grpc-status", "2")
			h.Set(prefix+"grpc-message", "cannot%20read the frame")
		})
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
		status  int
		code    string
		message string
	}{
		{"grpc-go", grpc.NewServer(), 415, "invalid_argument", "invalid gRPC request content-type"},
		{"headers", refusing(false), 200, "unknown", "cannot read the frame"},
		{"trailers", refusing(true), 200, "unknown", "cannot read the frame"},
	} {
		to := "" // the URL of the server
		if server, ok := c.handler.(*grpc.Server); ok {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go server.Serve(ln) //nolint:errcheck // it ends with Stop
			t.Cleanup(server.Stop)
			to = "http://" + ln.Addr().String()
		} else {
			to = newVersionServer(t, c.handler, true, true, true).URL
		}
		for _, id := range []int64{id, stream} {
			t.Run(fmt.Sprintf("%s/%d", c.name, id), func(t *testing.T) {
				l := *l
				l.TB = t
				o := l.withToken(l.options())
				o.To = mustURL(to)
				o.Insecure = true
				r := l.replay(id, o)
				if r.Comparison != Rejected || r.Origin != FromServer || r.Code != c.code || !strings.Contains(r.Message, c.message) || r.Status != c.status {
					t.Fatalf("%s %s %s %d %q %q", r.Comparison, r.Origin, r.Code, r.Status, r.Message, r.Concluded)
				}
				if got := strings.Join(r.Concluded, "; "); !strings.Contains(got, "it serves gRPC at this path, not Connect") {
					t.Errorf("notes %q", got)
				}
				if ex := l.answered(r.Exchange); ex.Code != c.code {
					t.Errorf("decoded as %q", ex.Code)
				}
			})
		}
	}
}
