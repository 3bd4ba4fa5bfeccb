package mitm

import (
	"context"
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

	"golang.org/x/net/proxy"

	"unwire/mitm/rules"
)

// A way is how the clients of a lane reach a server.
type way struct {
	name string

	// proxied says that clients are told of an HTTP proxy: with CONNECT, or the URL of
	// a server in clear.
	proxied bool

	// upstream is the scheme of the user's proxy behind the recording one; "": none.
	upstream string

	// rules are loaded into the proxy; "": none. except are the checks that cannot be equal then.
	rules  string
	except []string
}

const (
	directWay      = "direct"
	proxyWay       = "proxy"
	socksWay       = "socks"
	transparentWay = "transp."
	reverseWay     = "reverse"
	reverseTLSWay  = "rev-tls"
)

// ways are the lanes of the matrix, the first is what the others are compared with.
var ways = []way{
	{name: directWay},
	{name: proxyWay, proxied: true},
	{name: reverseWay},
	{name: reverseTLSWay},
	{name: socksWay},
	{name: transparentWay},
	{name: "by-http", proxied: true, upstream: "http"},
	{name: "by-tls", proxied: true, upstream: "https"},
	{name: "by-socks", proxied: true, upstream: "socks5"},
}

// ruleWays are the lanes of the matrix with rules: that match no exchange, that match exchanges and none of their
// frames, and the same for one direction.
var ruleWays = []way{
	{name: directWay},
	{name: "no-match", proxied: true, rules: noMatchRules},
	{name: "no-frame", proxied: true, rules: noFrameRules, except: wholeFrames},
	{name: "only-up", proxied: true, rules: onlyUpRules, except: wholeFrames},
	{name: "only-down", proxied: true, rules: onlyDownRules, except: wholeFrames},
}

// wholeFrames are the checks that notice that a frame is forwarded only when all of it has arrived, and that its bytes
// are framed anew.
var wholeFrames = []string{
	"websocket/HTTP/2", "websocket/HTTP/2, compressed", "raw/WebSocket, fragments and a ping",
	"bytes/chunks with extensions", "bytes/early answer",
}

const (
	noMatchRules = "rules:\n  - match: host:nobody.example\n    set: 1=x\n  - match: method:Nothing path:1\n    drop: true\n"
	noFrameRules = "rules:\n  - match: text:\"this text is in no frame\"\n    set: 1=x\n"

	onlyUpRules   = "rules:\n  - match: dir:up text:\"this text is in no frame\"\n    set: 1=x\n"
	onlyDownRules = "rules:\n  - match: dir:down text:\"this text is in no frame\"\n    fail: internal\n"
)

// A lane is one way from a client to the origin of the matrix.
type lane struct {
	way
	bench   *testProxy // nil: straight
	base    string     // the origin's URL as the client knows it
	roots   *x509.CertPool
	caFile  string // the same, as a file
	proxy   func(*http.Request) (*url.URL, error)
	clients [2]*http.Client // for HTTP/1 and HTTP/2

	// certificates are those of a client that shows its own, directly.
	certificates []tls.Certificate
}

// clear reports whether clients speak to the reverse proxy in clear.
func (l *lane) clear() bool { return l.name == reverseWay }

// reverse reports whether clients take the proxy for the server.
func (l *lane) reverse() bool { return l.name == reverseWay || l.name == reverseTLSWay }

func (l *lane) client(h2 bool) *http.Client {
	if h2 {
		return l.clients[1]
	}
	return l.clients[0]
}

// newClient is one with connections of its own.
func (l *lane) newClient(tb testing.TB, h2 bool) *http.Client {
	c := newClient(tb, h2, l.roots, l.proxy)
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig.Certificates = l.certificates
	if l.name == socksWay || l.name == transparentWay {
		tr.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) { return l.connect(tb, addr) }
	}
	if l.clear() && h2 {
		tr.Protocols.SetHTTP2(false)
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	return c
}

// connect opens a connection to a server, or to the proxy that is taken for one.
func (l *lane) connect(tb testing.TB, addr string) (net.Conn, error) {
	tb.Helper()
	switch {
	case l.bench == nil:
		return net.Dial("tcp", addr)
	case l.reverse():
		return net.Dial("tcp", l.bench.addr)
	case l.name == socksWay:
		d, err := proxy.SOCKS5("tcp", l.bench.addr, nil, proxy.Direct)
		if err != nil {
			return nil, err
		}
		return d.Dial("tcp", addr)
	case l.name == transparentWay:
		return net.Dial("tcp", l.redirected(tb, addr))
	}
	return l.bench.tunnel(addr), nil
}

// redirected is the address of a listener whose connections were on their way to addr.
func (l *lane) redirected(tb testing.TB, addr string) string {
	tb.Helper()
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	go l.bench.proxy.ServeTransparent(&redirectedListener{ln, to}, nil)
	return ln.Addr().String()
}

// dial connects by hand: to the server itself, through a tunnel, or in clear to
// the reverse proxy. Without a name the address is the server's.
func (l *lane) dial(t testing.TB, addr, name string, alpn ...string) (net.Conn, error) {
	t.Helper()
	raw, err := l.connect(t, addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { raw.Close() })
	if l.clear() {
		return raw, nil
	}
	return l.handshake(t, raw, name, alpn...)
}

func (l *lane) handshake(t testing.TB, raw net.Conn, name string, alpn ...string) (net.Conn, error) {
	conn := tls.Client(raw, &tls.Config{ServerName: name, RootCAs: l.roots, NextProtos: alpn, Certificates: l.certificates})
	return conn, conn.HandshakeContext(t.Context())
}

// A check is a row of the matrix: what it returns must be the same in every
// lane, and hold want, so that it cannot pass by failing everywhere alike.
type check struct {
	client, name string
	want         string

	// direct says that it is not for the reverse proxy, as it is about TLS, or not HTTP.
	direct bool

	// noUpstream says that the user's proxy would change it.
	noUpstream bool

	// proxied says that its client knows no way but HTTP proxies.
	proxied bool

	run func(t *testing.T, l *lane) string
}

// isShort reports whether the check is made in all lanes in every run, not only in a long
// one. The others are made directly, through the proxy and the reverse proxy.
func (c check) isShort() bool {
	return !slices.Contains([]string{"go", "curl", "grpc-go", "node"}, c.client)
}

// appliesTo reports whether the check can be made in a lane.
func (c check) appliesTo(l *lane) bool {
	switch {
	case !c.isShort() && os.Getenv("UNWIRE_LONG") == "" && !slices.Contains([]string{directWay, proxyWay, reverseWay, "no-match", "no-frame", "only-up", "only-down"}, l.name):
		return false
	case slices.Contains(l.except, c.client+"/"+c.name):
		return false
	case c.direct && l.reverse(), c.noUpstream && l.upstream != "":
		return false
	case c.proxied:
		return l.proxied || l.bench == nil || l.reverse()
	}
	return true
}

// newLane starts one way to an origin.
func newLane(t *testing.T, w way, origin *httptest.Server, set func(*Options)) *lane {
	t.Helper()
	l := &lane{way: w, base: origin.URL}
	trusted := origin.Certificate()
	if w.name != directWay {
		l.bench = newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			if l.reverse() {
				o.Reverse, _ = url.Parse(origin.URL)
			}
			if w.upstream != "" {
				newUserProxy(t, w.upstream).use(o)
			}
			if w.rules != "" {
				o.Rewrite = newRules(t, w.rules)
			}
			if set != nil {
				set(o)
			}
		})
		trusted = l.bench.ca.Certificate
	}
	switch {
	case l.clear():
		l.base = "http://" + l.bench.addr
	case l.reverse():
		l.base = "https://" + l.bench.addr
	case w.proxied:
		l.proxy = http.ProxyURL(l.bench.url())
	}
	if !l.clear() {
		l.roots = x509.NewCertPool()
		l.roots.AddCert(trusted)
		l.caFile = filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(l.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.clients = [2]*http.Client{l.newClient(t, false), l.newClient(t, true)}
	return l
}

// newLanes starts the ways to an origin. The proxies show a certificate to servers that
// ask for one, as the client does that goes directly.
func newLanes(t *testing.T, origin *httptest.Server, who identity, ways []way) []*lane {
	t.Helper()
	var lanes []*lane
	for _, w := range ways {
		l := newLane(t, w, origin, func(o *Options) { o.ClientCertificates = who.shown })
		if l.bench == nil {
			l.certificates = []tls.Certificate{who.own}
			l.clients = [2]*http.Client{l.newClient(t, false), l.newClient(t, true)}
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// TestMatrix runs every check in every lane, and prints what it found as a
// table (make matrix).
func TestMatrix(t *testing.T) {
	t.Parallel()
	testMatrix(t, ways)
}

// TestMatrixWithRules runs every check with rules that change nothing.
func TestMatrixWithRules(t *testing.T) {
	t.Parallel()
	testMatrix(t, ruleWays)
}

// loadRules reads rules.
func loadRules(tb testing.TB, text string) *rules.Set {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	s, err := rules.Load(path)
	if err != nil {
		tb.Fatalf("%s\n%v", text, err)
	}
	return s
}

// newRules returns the policy of rules.
func newRules(tb testing.TB, text string) *rules.Policy {
	tb.Helper()
	return rules.New(loadRules(tb, text), rules.Options{Report: func(text string) { tb.Log(text) }})
}

func testMatrix(t *testing.T, ways []way) {
	origin := newMatrixOrigin(t)
	who := newIdentity(t)
	lanes := newLanes(t, origin, who, ways)
	checks := slices.Concat(goChecks(), rawChecks(origin), byteChecks(t, origin), grpcChecks(t), curlChecks(t), nodeChecks(t),
		websocketChecks(t), otherChecks(t), certificateChecks(t, who))
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
	count := make(map[string]int)
	line := func(client, name string, cells []string) {
		fmt.Fprintf(&table, "%-9s %-34s", client, name)
		for _, c := range cells {
			fmt.Fprintf(&table, " %-8s", c)
		}
		table.WriteByte('\n')
	}
	names := make([]string, len(lanes))
	for i, l := range lanes {
		names[i] = l.name
	}
	line("client", "check", names)
	for i, c := range checks {
		line(c.client, c.name, cells[i])
		for _, cell := range cells[i] {
			count[cell]++
		}
	}
	t.Logf("%d checks, %d cells are equal to direct, %d do not apply\n%s", len(checks), count["ok"], count["-"], table.String())
}

// across runs a check in each lane and returns the row's cells.
func (c check) across(t *testing.T, lanes []*lane) []string {
	row := make([]string, len(lanes))
	var first string
	for i, l := range lanes {
		if !c.appliesTo(l) {
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
