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
	"unwire/mitm/rewrite"
	"unwire/mitm/socks"
	"unwire/mitm/upstream"
)

// A dialer connects to servers, optionally through the user's proxy. It refuses to connect to this proxy's own
// listeners.
type dialer struct {
	// Dialer opens TCP connections.
	net.Dialer
	// upstream connects through the user's proxy, if one is configured.
	upstream upstream.Dialer
	// certificates are the client certificates for servers that request one; nil for none.
	certificates *clientcert.Certificates

	// id identifies this proxy in requests to an upstream proxy, to detect loops.
	id string

	// trustedRoots are the CAs in Options.UpstreamRoots.
	trustedRoots *x509.CertPool
	// insecure is the option Options.UpstreamInsecure.
	insecure bool
	// rewrite contains rules that may redirect connections to other servers; nil for none.
	rewrite rewrite.Policy

	// keyLog receives TLS secrets in NSS key log format; nil for none.
	keyLog io.Writer
	// spares are unused open connections to servers, for later requests.
	spares upstream.Spares

	// isOwnAddress reports whether an address must not be connected to, because it is one of the proxy's own
	// listeners.
	isOwnAddress func(*net.TCPAddr) bool
}

// names returns the names of a target as host:port: by its address, and by the server name (SNI) that the
// client sent.
func (t target) names() []string {
	names := []string{t.addr}
	if t.sni != "" && t.sni != hosts.Name(t.addr) {
		names = append(names, withPort(t.sni, portOf(t.addr)))
	}
	return names
}

// proxyFor returns the user's proxy for a server, or nil for a direct connection.
func (d *dialer) proxyFor(t target) *url.URL {
	return d.upstream.Proxies.For(t.scheme, t.names()...)
}

// viaFor returns the ids of all unwire proxies that a connection to a target has passed through, including this
// one, separated by spaces.
func (d *dialer) viaFor(t target) string { return strings.TrimSpace(t.via + " " + d.id) }

// spareKey returns the key under which spare connections to a target are stored. Connections with equal keys
// are interchangeable.
func (d *dialer) spareKey(t target) string {
	if proxy := d.proxyFor(t); proxy != nil {
		return t.addr + " " + upstream.Name(proxy) + " " + t.via
	}
	return t.addr
}

// mapped returns the target to which a rewriting rule redirects t, or t itself.
func (d *dialer) mapped(t target) target {
	if d.rewrite == nil || !d.rewrite.Maps() {
		return t
	}
	u, err := url.Parse(d.rewrite.Server(t.scheme, t.hostPort()))
	if err != nil || u.Host == "" {
		return t
	}
	to := targetOf(u)
	to.alpn, to.via = t.alpn, t.via
	return to
}

// dial returns a spare connection to the server, or opens a new one.
func (d *dialer) dial(ctx context.Context, t target) (net.Conn, error) {
	if conn := d.spares.Claim(d.spareKey(t)); conn != nil {
		return conn, nil
	}
	return d.dialNew(ctx, t)
}

// dialNew opens a connection to the server, through the user's proxy if there is one.
func (d *dialer) dialNew(ctx context.Context, t target) (net.Conn, error) {
	return d.upstream.Dial(ctx, d.proxyFor(t), t.addr, d.viaFor(t))
}

// dialDirect opens a TCP connection to a server, or to a proxy. It refuses connections that would lead back to
// this proxy.
func (d *dialer) dialDirect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &upstream.ConnectError{Addr: addr, Err: err}
	}
	// Check after connecting, because a name can resolve to any address.
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && d.isOwnAddress(a) {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", addr, errOwnAddress)
	} else if ok && chain.IsCycle(ctx, a) {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", addr, errProxyRing)
	}
	return conn, nil
}

// httpsTarget returns the target for an address (host:port) if neither the protocol nor the host name is known.
// The user's proxy is then chosen as for HTTPS, unless the port is 80.
func httpsTarget(addr, via string) target {
	t := target{scheme: "https", addr: addr, via: via}
	if portOf(addr) == "80" {
		t.scheme = "http"
	}
	return t
}

// hasPassed reports whether the ids in via include this proxy, i.e. the connection is in a loop, or would
// exceed the limit of about nine ids.
func (d *dialer) hasPassed(via string) bool {
	return slices.Contains(strings.Fields(via), d.id) || len(via)+1+len(d.id) > socks.MaxVia
}

// checkVia removes the request header with the ids of the unwire proxies that a request has passed through, and
// returns its value. If this proxy is among them, it responds with an error, and ok is false.
func (p *Proxy) checkVia(w http.ResponseWriter, r *http.Request) (via string, ok bool) {
	via = r.Header.Get(upstream.ViaHeader)
	r.Header.Del(upstream.ViaHeader)
	if p.dialer.hasPassed(via) {
		p.log.Warn("a request has come back to this proxy", "host", r.Host)
		answerLoop(w, "unwire: this request has passed this proxy before: two proxies point at each other\n")
		return "", false
	}
	return via, true
}

// errProxyRing is the error for a connection to a loop of reverse proxies. It matches upstream.ErrLoop.
var errProxyRing error = proxyRingError{}

// A proxyRingError is the type of errProxyRing.
type proxyRingError struct{}

// Error describes the loop.
func (proxyRingError) Error() string {
	return "a chain of reverse proxies leads back to this one: point one of the proxies at a server"
}

// Is reports whether target is upstream.ErrLoop.
func (proxyRingError) Is(target error) bool { return target == upstream.ErrLoop }

// loopHeaderValue is the value of upstream.ViaHeader in a response to a looping request. It informs another
// unwire that the response is not the server's.
const loopHeaderValue = "loop"

// answerLoop responds with an error to a request that would be forwarded in a loop.
func answerLoop(w http.ResponseWriter, text string) {
	w.Header().Set(upstream.ViaHeader, loopHeaderValue)
	http.Error(w, text, http.StatusLoopDetected)
}

// connectBeforeAnswer connects to the server before the proxy reports success to a client that is another
// unwire, so that this client receives the connection error. The connection is kept as a spare for the client's
// first request.
func (p *Proxy) connectBeforeAnswer(ctx context.Context, t target) error {
	if t.via == "" {
		return nil
	}

	// Only another unwire waits for the result.
	t = p.dialer.mapped(t)
	conn, err := p.dialer.dialNew(ctx, t)
	if err == nil {
		p.dialer.spares.Keep(p.dialer.spareKey(t), conn)
	}
	return err
}
