package mitm

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"unwire/captures"
)

// handshake does TLS by hand inside a tunnel.
func (b *bench) handshake(conn net.Conn, sni string, alpn ...string) *tls.Conn {
	b.tb.Helper()
	c := tls.Client(conn, &tls.Config{RootCAs: b.roots(), ServerName: sni, NextProtos: alpn})
	ctx, cancel := context.WithTimeout(context.Background(), matrixTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		b.tb.Fatal(err)
	}
	return c
}

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
			b := newBench(t, []*httptest.Server{origin}, nil)
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
	b := newBench(t, []*httptest.Server{origin}, nil)
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

// TestBytesSentWithConnect are not lost: a client need not wait for the answer.
func TestBytesSentWithConnect(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok "+r.URL.Path) }))
	defer origin.Close()
	b := newBench(t, nil, nil)
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	addr := origin.Listener.Addr().String()
	_, _ = io.WriteString(conn, "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\nGET /early HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	expectLine(t, conn, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")
	if ex := b.one(); ex.URL != "http://"+addr+"/early" || ex.Outcome != captures.Complete {
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
	b := newBench(t, nil, nil)
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

func TestOtherProtocolsPassUnread(t *testing.T) {
	for name, c := range map[string]struct{ greeting, says string }{
		"client speaks first": {"", "\x00\x01binary"},
		"looks like a method": {"", "HELO me\r\n"},
		"server speaks first": {"220 hello\r\n", "EHLO me\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			conn := b.tunnel(echoServer(t, c.greeting))
			expectLine(t, conn, c.greeting)
			_, _ = io.WriteString(conn, c.says)
			expectLine(t, conn, c.says)
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
				t.Errorf("after the end: %q, %v", rest, err)
			}
			b.recorded(0)
		})
	}
}

// TestSlowClientIsStillRecorded: silence at the start of a tunnel does not make
// its client's words unread.
func TestSlowClientIsStillRecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	b := newBench(t, []*httptest.Server{origin}, nil)
	raw := b.tunnel(origin.Listener.Addr().String())
	time.Sleep(silentClientDelay + 100*time.Millisecond)
	conn := b.handshake(raw, "127.0.0.1")
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	b.one()
}

func TestTLSForSomethingElsePassesUnread(t *testing.T) {
	origin := newTLSOrigin(t, false, http.NotFoundHandler())
	origin.TLS.NextProtos = []string{"mqtt"}
	b := newBench(t, []*httptest.Server{origin}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(origin.Certificate()) // its own certificate comes through
	conn := tls.Client(b.tunnel(origin.Listener.Addr().String()), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"mqtt"}})
	if err := conn.Handshake(); err != nil || conn.ConnectionState().NegotiatedProtocol != "mqtt" {
		t.Errorf("%v, %+v", err, conn.ConnectionState().NegotiatedProtocol)
	}
}

func TestHostsLeftAlone(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())
	for name, c := range map[string]struct {
		set      func(*Options)
		host     string
		recorded bool
	}{
		"skipped":              {func(o *Options) { o.Skip = []string{"*.example", "LOCALHOST"} }, "localhost", false},
		"skipped with port":    {func(o *Options) { o.Skip = []string{"localhost:" + port} }, "localhost", false},
		"other port skipped":   {func(o *Options) { o.Skip = []string{"localhost:1"} }, "localhost", true},
		"not among the only":   {func(o *Options) { o.Only = []string{"*.cursor.sh"} }, "localhost", false},
		"among the only":       {func(o *Options) { o.Only = []string{"local*"} }, "localhost", true},
		"address, skipped SNI": {func(o *Options) { o.Skip = []string{"example.com"} }, "127.0.0.1", false},
		"address, only SNI":    {func(o *Options) { o.Only = []string{"example.com"} }, "127.0.0.1", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []*httptest.Server{origin}, c.set)
			roots := x509.NewCertPool()
			if c.recorded {
				roots.AddCert(b.ca.Certificate())
			} else {
				roots.AddCert(origin.Certificate())
			}
			client := newClient(t, true, roots, http.ProxyURL(b.url()))
			client.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // which its certificate is for
			if _, body := get(t, client, "https://"+c.host+":"+port); string(body) != "ok" {
				t.Errorf("body %q", body)
			}
			client.CloseIdleConnections()
			b.recorded(map[bool]int{true: 1}[c.recorded])
		})
	}
}

func TestSkippedPlainHTTP(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding"))
	}))
	defer origin.Close()
	b := newBench(t, nil, func(o *Options) { o.Skip = []string{"127.0.0.*"} })
	req, _ := http.NewRequest("GET", origin.URL, nil)
	req.Header.Set("Accept-Encoding", "br")
	res, err := b.client(false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "br" {
		t.Errorf("body %q", body)
	}
	b.recorded(0)
}

func TestRefusedCertificateIsRecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	b := newBench(t, []*httptest.Server{origin}, nil)
	client := newClient(t, true, x509.NewCertPool(), http.ProxyURL(b.url()))
	if _, err := client.Get(origin.URL); err == nil {
		t.Fatal("the client trusts anybody")
	}
	ex := b.one()
	if ex.Outcome != captures.Failed || ex.Method != "CONNECT" || ex.URL != origin.URL || !strings.Contains(ex.Error, "client refused the certificate") {
		t.Errorf("recorded %+v", ex)
	}
}

func TestUpgrade(t *testing.T) {
	for _, secure := range []bool{false, true} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-Websocket-Key") != "k" {
				http.Error(w, "no upgrade", http.StatusBadRequest)
				return
			}
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
			_, _ = io.Copy(conn, buf)
		})
		var origin *httptest.Server
		if secure {
			origin = newTLSOrigin(t, false, handler)
		} else {
			origin = httptest.NewServer(handler)
			defer origin.Close()
		}
		b := newBench(t, []*httptest.Server{origin}, nil)
		conn := b.tunnel(origin.Listener.Addr().String())
		if secure {
			conn = b.handshake(conn, "127.0.0.1")
		}
		// The first words come with the request.
		_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-Websocket-Key: k\r\n\r\nping1")
		r := bufio.NewReader(conn)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "websocket" {
			t.Fatalf("%v, %v", res, err)
		}
		_, _ = io.WriteString(conn, "ping2")
		got := make([]byte, len("helloping1ping2"))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != "helloping1ping2" {
			t.Fatalf("%q, %v", got, err)
		}
		if h, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = h.CloseWrite()
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("end: %v", err)
		}
		ex := b.one()
		if ex.Status != 101 || ex.Outcome != captures.Complete || string(b.body(ex.ID, captures.Up)) != "ping1ping2" || string(b.body(ex.ID, captures.Down)) != "helloping1ping2" {
			t.Errorf("recorded %+v", ex)
		}
	}
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]protocol{
		"":                                  undecided,
		"\x16":                              protocolTLS,
		"G":                                 undecided,
		"GET /":                             undecided,
		"GET / HTTP/1.1\r\n":                protocolHTTP,
		"POST /a?b HTTP/1.0\n":              protocolHTTP,
		"M-SEARCH * HTTP/1.1\r\n":           protocolHTTP,
		"PRI * HTTP":                        undecided,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":  protocolHTTP,
		"SSH-2.0-x\r\n":                     protocolOther,
		"EHLO a b\r\n":                      protocolOther,
		"EHLO a HTTP/1.9\r\n":               protocolOther,
		"GET " + strings.Repeat("a", 20000): protocolOther,
		strings.Repeat("A", 30):             protocolOther,
		" GET":                              protocolOther,
		"\x00":                              protocolOther,
	} {
		if got := sniff([]byte(in)); got != want {
			t.Errorf("sniff(%.30q) = %d, want %d", in, got, want)
		}
	}
}

// A scriptConn is a connection that says what it was given, and then nothing.
type scriptConn struct {
	net.Conn
	r io.Reader
}

func (c scriptConn) Read(p []byte) (int, error)      { return c.r.Read(p) }
func (c scriptConn) Write([]byte) (int, error)       { return 0, errors.New("written to") }
func (c scriptConn) SetDeadline(time.Time) error     { return nil }
func (c scriptConn) SetReadDeadline(time.Time) error { return nil }
func (c scriptConn) Close() error                    { return nil }

// FuzzFirstBytes: whatever a client says first, it is read again in full, and
// nothing is answered before it is known what it is.
func FuzzFirstBytes(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Add(append([]byte{recordTypeTLS}, bytes.Repeat([]byte("0"), 4000)...)) // given up before all is read
	var hello bytes.Buffer
	_ = tls.Client(writeOnly{w: &hello}, &tls.Config{ServerName: "api2.cursor.sh", NextProtos: []string{"h2"}}).Handshake()
	f.Add(hello.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 8<<10 {
			t.Skip("longer than any head that matters")
		}
		c := &clientConn{Conn: scriptConn{r: bytes.NewReader(in)}}
		kind, _ := c.sniffProtocol(time.Second)
		if kind == protocolTLS {
			if h, err := c.readHello(t.Context()); err == nil && len(h.sni) > 1<<16 {
				t.Error("a server name of more than 64 KB")
			}
		}
		rest, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(rest, in) {
			t.Errorf("read again %q, %v, of %q", rest, err, in)
		}
	})
}

type writeOnly struct {
	net.Conn
	w io.Writer
}

func (c writeOnly) Write(p []byte) (int, error)      { return c.w.Write(p) }
func (c writeOnly) Read([]byte) (int, error)         { return 0, io.EOF }
func (c writeOnly) SetDeadline(time.Time) error      { return nil }
func (c writeOnly) SetWriteDeadline(time.Time) error { return nil }
func (c writeOnly) SetReadDeadline(time.Time) error  { return nil }
func (c writeOnly) Close() error                     { return nil }

// TestShutdownLeavesNothing: tunnels that are passed on, silent connections and
// idle ones all end with the proxy.
func TestShutdownLeavesNothing(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	echo := echoServer(t, "hello")
	b := newBench(t, []*httptest.Server{origin}, func(o *Options) { o.Skip = []string{"localhost"} })
	get(t, b.client(true), origin.URL) // what is started once is running now
	before := runtime.NumGoroutine()
	for _, addr := range []string{echo, strings.Replace(echo, "127.0.0.1", "localhost", 1)} {
		expectLine(t, b.tunnel(addr), "hello")
	}
	b.tunnel(origin.Listener.Addr().String()) // says nothing
	redirected, err := net.Dial("tcp", b.redirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer redirected.Close()
	for _, h2 := range []bool{false, true} {
		get(t, b.client(h2), origin.URL)
	}
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	if err := b.proxy.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	deadline := time.Now().Add(routeWait + matrixTimeout)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
