package outbound

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// An answer in another version of HTTP is explained, and not as a request that may have been
// executed.
func TestOtherVersionOfHTTP(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}

	// A server of gRPC, and one that answers whatever it gets in HTTP/1.1.
	http2 := listen()
	server := grpc.NewServer()
	go server.Serve(http2) //nolint:errcheck // it ends with Stop
	t.Cleanup(server.Stop)
	http1 := listen()
	t.Cleanup(func() { _ = http1.Close() })
	go func() {
		for {
			conn, err := http1.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Read(make([]byte, 24)) // the beginning of a connection of HTTP/2
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
		}
	}()

	for _, c := range []struct{ version, address, want, early string }{
		{"1.1", http2.Addr().String(), OnlyHTTP2, OnlyHTTP2},
		{"2", http1.Addr().String(), OnlyHTTP1, neverHTTP2}, // if the answer is read before the request is written
	} {
		transport := New("http", c.version, true, true, Policy{})
		var at Progress
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		req, err := http.NewRequestWithContext(at.Trace(ctx, nil), http.MethodPost, "http://"+c.address+"/a.B/C", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("HTTP/%s: %s", c.version, resp.Status)
		}
		if reason, text := at.Explain(err, time.Second); reason != NoAnswer || text != c.want && text != c.early {
			t.Errorf("HTTP/%s: %s %q of %v", c.version, reason, text, err)
		}
		if f := at.Failure(err, time.Second); f.Message != c.want && f.Message != c.early {
			t.Errorf("HTTP/%s: %q", c.version, f.Message)
		}
		cancel()
		transport.CloseIdleConnections()
	}
}

// A server of HTTP/2 is recognized whether its SETTINGS arrive before or after the request is written.
func TestHTTP2IsRecognizedAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(conn, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	for range 200 {
		transport := New("http", "1.1", true, true, Policy{})
		var at Progress
		req, err := http.NewRequestWithContext(at.Trace(ctx, nil), http.MethodPost, "http://"+l.Addr().String()+"/a.B/C", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatal(resp.Status)
		}
		if reason, text := at.Explain(err, time.Second); reason != NoAnswer || text != OnlyHTTP2 {
			t.Fatalf("%s %q of %v", reason, text, err)
		}
		transport.CloseIdleConnections()
	}
}
