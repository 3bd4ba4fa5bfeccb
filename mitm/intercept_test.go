package mitm

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"unwire/captures"
)

func TestALPNFollowsTheServer(t *testing.T) {
	for _, c := range []struct {
		name    string
		serves  []string
		offers  []string
		version string
		want    string
	}{
		{"both", []string{"h2", "http/1.1"}, []string{"h2", "http/1.1"}, "HTTP/2.0", "h2"},
		{"server has HTTP/1 only", []string{"http/1.1"}, []string{"h2", "http/1.1"}, "HTTP/1.1", "http/1.1"},
		{"client has HTTP/1 only", []string{"h2", "http/1.1"}, []string{"http/1.1"}, "HTTP/1.1", "http/1.1"},
		{"server prefers HTTP/1", []string{"http/1.1", "h2"}, []string{"h2", "http/1.1"}, "HTTP/1.1", "http/1.1"},
		{"no offer", []string{"h2", "http/1.1"}, nil, "HTTP/1.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
			origin.EnableHTTP2 = true
			origin.StartTLS()
			t.Cleanup(origin.Close)
			origin.TLS.NextProtos = c.serves
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			for range 2 { // asked, then remembered
				conn := b.handshake(b.tunnel(origin.Listener.Addr().String()), "127.0.0.1", c.offers...)
				if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
					t.Errorf("negotiated %q, want %q", got, c.want)
				}
				conn.Close()
			}
			if c.want == "h2" {
				if _, body := get(t, b.client(true), origin.URL); string(body) != c.version {
					t.Errorf("the server saw %s", body)
				}
			}
		})
	}
}

// TestCertificateIsForTheServerName: a client may connect to an address and ask
// for a name there.
func TestCertificateIsForTheServerName(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Host)
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	conn := b.handshake(b.tunnel(origin.Listener.Addr().String()), "example.com")
	if names := conn.ConnectionState().PeerCertificates[0].DNSNames; len(names) != 1 || names[0] != "example.com" {
		t.Errorf("the certificate is for %q", names)
	}
	_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: example.com\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "example.com example.com" {
		t.Errorf("the server saw %q", body)
	}
	if ex := b.one(); ex.URL != "https://example.com/x" || ex.TLS.ServerName != "example.com" || ex.Server != origin.Listener.Addr().String() {
		t.Errorf("recorded %+v", ex)
	}
}

func TestHTTP2WithPriorKnowledgeInTunnel(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	origin.Config.Protocols = protocols
	origin.Start()
	defer origin.Close()
	b := newTestProxy(t, nil, nil)
	addr := origin.Listener.Addr().String()
	tr := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return b.tunnel(addr), nil }}
	if _, body := get(t, &http.Client{Transport: tr}, "http://"+addr); string(body) != "HTTP/2.0" {
		t.Errorf("the server saw %s", body)
	}
	if ex := b.one(); ex.HTTP != "2" || ex.TLS != (captures.TLS{}) {
		t.Errorf("recorded %+v", ex)
	}
}

// echoServer answers each connection with a greeting, if any, and an echo.
func echoServer(t *testing.T, greeting string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(conn, greeting)
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return ln.Addr().String()
}

// TestKeyLog: the sessions of both sides are in it, and only if it is asked for.
func TestKeyLog(t *testing.T) {
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	var log lockedBuffer
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.KeyLog = &log })
	get(t, b.client(true), origin.URL)
	if n := strings.Count(log.String(), "CLIENT_TRAFFIC_SECRET_0 "); n != 2 {
		t.Errorf("%d sessions in the key log:\n%s", n, log.String())
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
