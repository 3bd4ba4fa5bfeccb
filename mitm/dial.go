package mitm

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"unwire/mitm/chain"
	"unwire/mitm/clientcert"
	"unwire/mitm/hosts"
	"unwire/mitm/socks"
	"unwire/mitm/upstream"
)

// A dialer connects to servers, through the user's proxy where there is one, but never
// to this proxy's own listeners.
type dialer struct {
	net.Dialer
	upstream     upstream.Dialer
	certificates *clientcert.Certificates

	// id names this proxy to the next one.
	id string

	roots        *x509.CertPool
	insecure     bool // servers are not verified
	keyLog       io.Writer
	spares       upstream.Spares
	isOwnAddress func(*net.TCPAddr) bool
}

// names are the names of a target as host:port: its address, and what the client
// calls it.
func (t target) names() []string {
	names := []string{t.addr}
	if t.sni != "" && t.sni != hosts.Name(t.addr) {
		names = append(names, withPort(t.sni, portOf(t.addr)))
	}
	return names
}

// proxyFor returns the user's proxy for a server; nil: it is reached directly.
func (d *dialer) proxyFor(t target) *url.URL {
	return d.upstream.Proxies.For(t.scheme, t.names()...)
}

// viaFor names the instances that a connection to a target has passed.
func (d *dialer) viaFor(t target) string { return strings.TrimSpace(t.via + " " + d.id) }

// spareKey tells the connections apart that can stand for each other.
func (d *dialer) spareKey(t target) string {
	if proxy := d.proxyFor(t); proxy != nil {
		return t.addr + " " + upstream.Name(proxy) + " " + t.via
	}
	return t.addr
}

func (d *dialer) dial(ctx context.Context, t target) (net.Conn, error) {
	if conn := d.spares.Claim(d.spareKey(t)); conn != nil {
		return conn, nil
	}
	return d.dialNew(ctx, t)
}

func (d *dialer) dialNew(ctx context.Context, t target) (net.Conn, error) {
	return d.upstream.Dial(ctx, d.proxyFor(t), t.addr, d.viaFor(t))
}

// dialDirect makes a TCP connection to a server, or to a proxy on the way.
func (d *dialer) dialDirect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	// Looked at after the fact, since a name may stand for any address.
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && d.isOwnAddress(a) {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", addr, errOwnAddress)
	} else if ok && chain.IsCycle(ctx, a) {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", addr, errRing)
	}
	return conn, nil
}

// unread is the target of a connection of which only the address is known: HTTPS_PROXY
// is for it, unless its port is that of HTTP.
func unread(addr, via string) target {
	t := target{scheme: "https", addr: addr, via: via}
	if portOf(addr) == "80" {
		t.scheme = "http"
	}
	return t
}

// hasPassed reports whether a connection has passed this proxy before, or nine others,
// whose names are as many as may be.
func (d *dialer) hasPassed(via string) bool {
	return slices.Contains(strings.Fields(via), d.id) || len(via)+1+len(d.id) > socks.MaxVia
}

// admitVia takes from a request to the proxy which instances of unwire it has passed,
// and answers it if this one is among them.
func (p *Proxy) admitVia(w http.ResponseWriter, r *http.Request) (via string, ok bool) {
	via = r.Header.Get(upstream.ViaHeader)
	r.Header.Del(upstream.ViaHeader)
	if p.dialer.hasPassed(via) {
		p.log.Warn("a request has come back to this proxy", "host", r.Host)
		answerLoop(w, "unwire: this request has passed this proxy before: two proxies point at each other\n")
		return "", false
	}
	return via, true
}

// errRing ends a loop of reverse proxies, which is upstream.ErrLoop.
var errRing error = ringError{}

type ringError struct{}

func (ringError) Error() string {
	return "it is a reverse proxy that leads back to itself: point one of the ring at a server"
}

func (ringError) Is(target error) bool { return target == upstream.ErrLoop }

// loopMark is the value of upstream.ViaHeader in an answer to a request that would go
// round in circles: it tells another unwire that the answer is not the server's.
const loopMark = "loop"

// answerLoop answers a request that would go round in circles.
func answerLoop(w http.ResponseWriter, text string) {
	w.Header().Set(upstream.ViaHeader, loopMark)
	http.Error(w, text, http.StatusLoopDetected)
}

// reachBefore connects to the server before another unwire, as the client, gets the
// answer that it is connected. So it gets an error of this proxy's instead, if there is
// one. The connection is kept for the client's first request.
func (p *Proxy) reachBefore(ctx context.Context, t target) error {
	if t.via == "" {
		return nil
	}
	conn, err := p.dialer.dialNew(ctx, t)
	if err == nil {
		p.dialer.spares.Keep(p.dialer.spareKey(t), conn)
	}
	return err
}
