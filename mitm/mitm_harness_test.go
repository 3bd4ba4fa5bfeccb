package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/mitm/ca"
)

// A testProxy is a running proxy that records into a store.
type testProxy struct {
	tb    testing.TB
	proxy *Proxy
	ca    *ca.Authority
	store *store.Store
	addr  string
}

// newTestProxy starts a proxy that trusts the given origins.
func newTestProxy(tb testing.TB, origins []*httptest.Server, set func(*Options)) *testProxy {
	tb.Helper()
	dir := tb.TempDir()
	ca, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		tb.Fatal(err)
	}
	store, err := store.Create(filepath.Join(dir, "test.uwc"), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	o := Options{CA: ca, Store: store, UpstreamRoots: x509.NewCertPool(), ControlToken: controlToken}
	for _, s := range origins {
		if c := s.Certificate(); c != nil {
			o.UpstreamRoots.AddCert(c)
		}
	}
	if set != nil {
		set(&o)
	}
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(ln) }()
	b := &testProxy{tb, p, ca, store, ln.Addr().String()}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx)
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
		if err := store.Close(); err != nil {
			tb.Errorf("store: %v", err)
		}
	})
	return b
}

// nobody is an address at which no server listens. A port that was free a
// moment ago may be another test's by now; this one is given to nobody.
const nobody = "127.0.0.1:1"

// newTLSOrigin starts a TLS server; without h2 it speaks HTTP/1.1 only.
func newTLSOrigin(tb testing.TB, h2 bool, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = h2
	s.StartTLS()
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (b *testProxy) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(b.ca.Certificate)
	return pool
}

func (b *testProxy) url() *url.URL { return &url.URL{Scheme: "http", Host: b.addr} }

// client is an HTTP client that uses the proxy and trusts its CA.
func (b *testProxy) client(h2 bool) *http.Client {
	return newClient(b.tb, h2, b.roots(), http.ProxyURL(b.url()))
}

// direct is a client that goes straight to an origin.
func direct(tb testing.TB, origin *httptest.Server, h2 bool) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(origin.Certificate())
	return newClient(tb, h2, pool, nil)
}

func newClient(tb testing.TB, h2 bool, roots *x509.CertPool, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	tr := &http.Transport{
		Proxy:              proxy,
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		DisableCompression: true,
		Protocols:          new(http.Protocols),
	}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetHTTP2(h2)
	tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tunnel opens a CONNECT tunnel by hand.
func (b *testProxy) tunnel(addr string) net.Conn {
	b.tb.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		b.tb.Fatal(err)
	}
	expectLine(b.tb, conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	return conn
}

func expectLine(tb testing.TB, conn net.Conn, want string) {
	tb.Helper()
	got := make([]byte, len(want))
	_ = conn.SetReadDeadline(time.Now().Add(matrixTimeout))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		tb.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
	_ = conn.SetReadDeadline(time.Time{})
}

// recorded waits until n exchanges have ended, and returns them by ID.
func (b *testProxy) recorded(n int) []*captures.Exchange {
	b.tb.Helper()
	return b.await(n, func(all, ended int) bool { return ended == n && all == n })
}

// ended waits until at least n exchanges have ended, and returns how many have.
func (b *testProxy) ended(n int) (have int) {
	b.tb.Helper()
	b.await(n, func(_, ended int) bool { have = ended; return ended >= n })
	return have
}

// await waits until enough says that there are enough exchanges, and enough of
// them that have ended.
func (b *testProxy) await(n int, enough func(all, ended int) bool) []*captures.Exchange {
	b.tb.Helper()
	for deadline := time.Now().Add(matrixTimeout); ; time.Sleep(5 * time.Millisecond) {
		var all []*captures.Exchange
		ended := 0
		if err := b.store.Flush(context.Background()); err != nil {
			b.tb.Fatal(err)
		}
		for ex, err := range b.store.Exchanges(context.Background()) {
			if err != nil {
				b.tb.Fatal(err)
			}
			all = append(all, ex)
			if ex.Ended() {
				ended++
			}
		}
		if enough(len(all), ended) {
			slices.SortFunc(all, func(a, b *captures.Exchange) int { return int(a.ID - b.ID) })
			return all
		}
		if time.Now().After(deadline) {
			b.tb.Fatalf("recorded: %d exchanges, %d of them ended; want %d", len(all), ended, n)
		}
	}
}

func (b *testProxy) one() *captures.Exchange { b.tb.Helper(); return b.recorded(1)[0] }

// body is what was recorded of a direction.
func (b *testProxy) body(id int64, d captures.Direction) []byte {
	b.tb.Helper()
	var out bytes.Buffer
	for c, err := range b.store.Chunks(context.Background(), id, 0) {
		if err != nil {
			b.tb.Fatal(err)
		}
		if c.Dir == d {
			out.Write(c.Data)
		}
	}
	return out.Bytes()
}

func get(tb testing.TB, c *http.Client, url string) (*http.Response, []byte) {
	tb.Helper()
	res, err := c.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return res, body
}

// eachVersion runs a test over HTTP/1.1 and over HTTP/2.
func eachVersion(t *testing.T, f func(t *testing.T, h2 bool)) {
	t.Run("HTTP 1.1", func(t *testing.T) { f(t, false) })
	t.Run("HTTP 2", func(t *testing.T) { f(t, true) })
}

// handshake does TLS by hand inside a tunnel.
func (b *testProxy) handshake(conn net.Conn, sni string, alpn ...string) *tls.Conn {
	b.tb.Helper()
	c := tls.Client(conn, &tls.Config{RootCAs: b.roots(), ServerName: sni, NextProtos: alpn})
	ctx, cancel := context.WithTimeout(context.Background(), matrixTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		b.tb.Fatal(err)
	}
	return c
}

func serveHello(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "hello "+r.URL.Path)
}
