package mitm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A lane is one way from a client to the origin of the matrix.
type lane struct {
	name    string
	bench   *testProxy // nil: straight
	base    string     // the origin's URL as the client knows it
	roots   *x509.CertPool
	caFile  string // the same, as a file
	proxy   func(*http.Request) (*url.URL, error)
	clients [2]*http.Client // for HTTP/1 and HTTP/2
}

func (l *lane) reverse() bool { return strings.HasPrefix(l.base, "http://") }

func (l *lane) client(h2 bool) *http.Client {
	if h2 {
		return l.clients[1]
	}
	return l.clients[0]
}

// newClient is one with connections of its own.
func (l *lane) newClient(tb testing.TB, h2 bool) *http.Client {
	c := newClient(tb, h2, l.roots, l.proxy)
	if l.reverse() && h2 {
		p := c.Transport.(*http.Transport).Protocols
		p.SetHTTP2(false)
		p.SetUnencryptedHTTP2(true)
	}
	return c
}

// dial connects by hand: to the server itself, through a tunnel, or in clear to
// the reverse proxy. Without a name the address is the server's.
func (l *lane) dial(t testing.TB, addr, name string, alpn ...string) (net.Conn, error) {
	t.Helper()
	var raw net.Conn
	var err error
	switch {
	case l.bench == nil:
		raw, err = net.Dial("tcp", addr)
	case l.reverse():
		raw, err = net.Dial("tcp", l.bench.addr)
	default:
		raw = l.bench.tunnel(addr)
	}
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { raw.Close() })
	if l.reverse() {
		return raw, nil
	}
	conn := tls.Client(raw, &tls.Config{ServerName: name, RootCAs: l.roots, NextProtos: alpn})
	return conn, conn.HandshakeContext(t.Context())
}

// A check is a row of the matrix: what it returns must be the same in every
// lane, and hold want, so that it cannot pass by failing everywhere alike.
type check struct {
	client, name string
	want         string
	direct       bool // only straight and through the proxy: it is about TLS
	run          func(t *testing.T, l *lane) string
}

// newLanes starts the ways to an origin.
func newLanes(t *testing.T, origin *httptest.Server) []*lane {
	t.Helper()
	dir := t.TempDir()
	trust := func(name string, cert *x509.Certificate) (*x509.CertPool, string) {
		pool := x509.NewCertPool()
		pool.AddCert(cert)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return pool, file
	}
	straight := &lane{name: "direct", base: origin.URL}
	straight.roots, straight.caFile = trust("origin.pem", origin.Certificate())

	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	through := &lane{name: "proxy", bench: b, base: origin.URL, proxy: http.ProxyURL(b.url()), caFile: b.ca.CertFile, roots: b.roots()}

	r := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Reverse, _ = url.Parse(origin.URL) })
	reverse := &lane{name: "reverse", bench: r, base: "http://" + r.addr}

	lanes := []*lane{straight, through, reverse}
	for _, l := range lanes {
		l.clients = [2]*http.Client{l.newClient(t, false), l.newClient(t, true)}
	}
	return lanes
}

// TestMatrix runs every check in every lane, and prints what it found as a
// table (make matrix).
func TestMatrix(t *testing.T) {
	t.Parallel()
	origin := newMatrixOrigin(t)
	lanes := newLanes(t, origin)
	checks := slices.Concat(goChecks(), rawChecks(origin), byteChecks(t, origin), grpcChecks(t), curlChecks(t), nodeChecks(t), otherChecks())
	if len(checks) < 40 {
		t.Fatalf("only %d checks", len(checks))
	}
	cells := make([][]string, len(checks))
	var mu sync.Mutex
	t.Run("checks", func(t *testing.T) {
		for i, c := range checks {
			cells[i] = make([]string, len(lanes))
			t.Run(c.client+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				row := c.across(t, lanes)
				mu.Lock()
				cells[i] = row
				mu.Unlock()
			})
		}
	})
	var table strings.Builder
	fmt.Fprintf(&table, "%-8s %-34s %-7s %-7s %-7s\n", "client", "check", lanes[0].name, lanes[1].name, lanes[2].name)
	for i, c := range checks {
		fmt.Fprintf(&table, "%-8s %-34s %-7s %-7s %-7s\n", c.client, c.name, cells[i][0], cells[i][1], cells[i][2])
	}
	t.Logf("%d checks\n%s", len(checks), table.String())
}

// across runs a check in each lane and returns the row's cells.
func (c check) across(t *testing.T, lanes []*lane) []string {
	row := make([]string, len(lanes))
	var first string
	for i, l := range lanes {
		if c.direct && l.reverse() {
			row[i] = "-"
			continue
		}
		got := c.run(t, l)
		row[i] = "ok"
		switch {
		case i == 0:
			first = got
			if !strings.Contains(got, c.want) || c.want == "" {
				row[i] = "FAILS"
				t.Errorf("%s: want %q in\n%s", l.name, c.want, got)
			}
		case got != first:
			row[i] = "DIFFERS"
			t.Errorf("%s:\n%s\ndirect:\n%s", l.name, got, first)
		}
	}
	return row
}
