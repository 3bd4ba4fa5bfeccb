package mitm

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"unwire/mitm/h2"
	"unwire/mitm/raw"
	"unwire/mitm/upstream"
)

const (
	// dialTimeout limits connecting to a server, and handshakeTimeout a TLS handshake with it.
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 15 * time.Second

	// idleConnTimeout is how long an idle connection to a server is kept, and unusedConnTimeout one that was
	// only opened to negotiate the protocol.
	idleConnTimeout   = 90 * time.Second
	unusedConnTimeout = 5 * time.Second

	// cleartextH2Timeout is how long a server without TLS may take to respond to the HTTP/2 preface.
	cleartextH2Timeout = 2 * time.Second

	// maxIdlePerOrigin limits the idle connections to one server, and maxOrigins the servers in the cache.
	maxIdlePerOrigin = 256
	maxOrigins       = 512

	protoH2 = "h2"
	protoH1 = "http/1.1"

	// protoOldH1 is offered by clients that are configured for HTTP/1.0.
	protoOldH1 = "http/1.0"
)

// errOwnAddress is the error for a request whose destination is the proxy itself.
var errOwnAddress = errors.New("the request is addressed to the proxy itself")

// errNoHTTP2 is the error for an HTTP/2 connection to a server that does not support HTTP/2.
var errNoHTTP2 = errors.New("does not support HTTP/2")

// An untrustedCertificateError means that a server's certificate could not be verified.
type untrustedCertificateError struct {
	// host is the name of the server.
	host string
	// err is the error of verifying the certificate.
	err error
}

// Error describes the problem.
func (e *untrustedCertificateError) Error() string {
	return fmt.Sprintf("the certificate of %s is not trusted by unwire: %v", e.host, e.err)
}

// Unwrap returns the error of the verification.
func (e *untrustedCertificateError) Unwrap() error { return e.err }

// An origin manages the connections to one server. Requests are sent to the server in the protocol that the
// client uses: HTTP/1 through an http.Transport, HTTP/2 through a relay with a connection of its own. HTTP/2
// requests are sent as HTTP/1 only if the server lacks HTTP/2 and the client could not know that (behind a
// reverse proxy, or because the server has changed).
type origin struct {
	// target is the server: its scheme, host and port.
	target target
	// dialer connects to the server.
	dialer *dialer

	// h1 sends HTTP/1 requests.
	h1 *http.Transport
	// dial is dialH1 as the value that routes share.
	dial func(ctx context.Context) (net.Conn, error)

	// forwarder is the user's HTTP proxy to which requests are sent instead of the server; nil if there is
	// none.
	forwarder *url.URL

	// gotRequest means that the client has sent a request to this server.
	gotRequest atomic.Bool

	// negotiations makes concurrent negotiations of the same offer share one connection.
	negotiations singleflight.Group
	// mu guards the fields below.
	mu sync.Mutex

	// negotiated maps a list of offered ALPN protocols, joined by commas, to the one that the server selected.
	negotiated map[string]string

	// unusedConn is a connection that was opened to negotiate the protocol, for use by the first request; nil if
	// there is none.
	unusedConn *serverConn
	// expiry closes unusedConn if no request uses it in time.
	expiry *time.Timer
}

// newOrigin returns the origin for a server. It creates the http.Transport without cloning another one: a clone
// would keep "h2".
func newOrigin(t target, d *dialer) *origin {
	o := &origin{target: t, dialer: d, negotiated: make(map[string]string)}
	o.dial = o.dialH1
	o.h1 = &http.Transport{
		DialContext:    func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx, t) },
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return o.dialTLS(ctx, protoH1) },
		// Compression must not change the headers.
		DisableCompression:    true,
		MaxIdleConnsPerHost:   maxIdlePerOrigin,
		IdleConnTimeout:       idleConnTimeout,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        chunkSize,
		WriteBufferSize:       chunkSize,
		Protocols:             new(http.Protocols),
	}
	o.h1.Protocols.SetHTTP1(true)
	if t.scheme == "http" {
		o.useForwarder(d.upstream.Proxies.Forwarder(t.names()...))
	}
	return o
}

// useForwarder makes requests go to the user's HTTP proxy. Requests for another host than that of the
// connection, and upgrades, still use a tunnel: the proxy would send them to another server, or drop the
// upgrade.
func (o *origin) useForwarder(proxy *url.URL) {
	if proxy == nil {
		return
	}
	o.forwarder = proxy
	o.h1.Proxy = func(r *http.Request) (*url.URL, error) { return o.forwarderOf(r), nil }
	o.h1.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
		if addr == proxy.Host {
			return o.dialer.upstream.DialProxy(ctx, proxy)
		}
		return o.dialer.dial(ctx, o.target)
	}
	// For a cleartext origin, the transport uses TLS only for the proxy itself.
	o.h1.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return o.dialer.upstream.DialProxy(ctx, proxy)
	}
}

// forwarderOf returns the HTTP proxy to which a request is sent, or nil if it is sent to the server.
func (o *origin) forwarderOf(r *http.Request) *url.URL {
	if upgradeOf(r.Header) != "" || !strings.EqualFold(withPort(r.Host, "80"), o.target.addr) {
		return nil
	}
	return o.forwarder
}

// roundTrip sends a request over HTTP/1 and returns the response. mayRepeat is as in sendOnce.
//
// Errors: *upstream.Error, also if a proxy responded instead of the server.
func (o *origin) roundTrip(r *http.Request, mayRepeat bool) (*http.Response, error) {
	proxy := o.forwarderOf(r)
	if proxy != nil {
		r.Header.Set(upstream.ViaHeader, o.dialer.viaFor(o.target))
	}
	res, err := sendOnce(o.h1, r, mayRepeat)
	if err != nil || proxy == nil || !upstream.IsRefusal(res) {
		return res, err
	}
	_ = res.Body.Close()
	return nil, upstream.Refusal(proxy, o.target.addr, res)
}

// negotiate returns the ALPN protocol that the server selects from an offer; "" if none. It connects to the
// server once per offer, and keeps the connection for a while. Without TLS, HTTP/2 is selected if it is the
// only offer, or if the server responds to an HTTP/2 preface.
func (o *origin) negotiate(ctx context.Context, offer []string) (string, error) {
	key := strings.Join(offer, ",")
	o.mu.Lock()
	pick, known := o.negotiated[key]
	o.mu.Unlock()
	if known {
		return pick, nil
	}

	// Concurrent requests share one negotiation.
	answer, err, _ := o.negotiations.Do(key, func() (any, error) {
		// Other callers wait for the same result, so it must not depend on the context of one of them.
		if o.target.scheme == "http" {
			return o.negotiateClear(context.WithoutCancel(ctx), offer)
		}
		conn, err := o.handshake(context.WithoutCancel(ctx), offer)
		if err != nil {
			return "", err
		}
		pick := conn.ConnectionState().NegotiatedProtocol
		o.mu.Lock()
		o.negotiated[key] = pick
		o.mu.Unlock()
		o.keepConn(conn)
		return pick, nil
	})
	return answer.(string), err
}

// negotiateClear implements negotiate for a server without TLS.
func (o *origin) negotiateClear(ctx context.Context, offer []string) (string, error) {
	pick := offer[0]
	if slices.Contains(offer, protoH2) && len(offer) > 1 {
		raw, err := o.dialer.dial(ctx, o.target)
		if err != nil {
			return "", err
		}
		pick = protoH1
		if h2.Answers(raw, cleartextH2Timeout) {
			pick = protoH2
		}
		_ = raw.Close()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.negotiated[strings.Join(offer, ",")] = pick
	return pick, nil
}

// hasNegotiated reports whether the server has selected the protocol proto from any offer.
func (o *origin) hasNegotiated(proto string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.negotiated {
		if p == proto {
			return true
		}
	}
	return false
}

// forgetNegotiated clears the cached results, because the server has changed.
func (o *origin) forgetNegotiated() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.negotiated)
}

// keepConn keeps a connection for the next request, for unusedConnTimeout.
func (o *origin) keepConn(conn *serverConn) {
	o.mu.Lock()
	old := o.unusedConn
	o.unusedConn = conn
	if o.expiry != nil {
		o.expiry.Stop()
	}
	o.expiry = time.AfterFunc(unusedConnTimeout, func() { o.dropConn(conn) })
	o.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
}

// dropConn closes a connection that keepConn has kept, if it is still unused.
func (o *origin) dropConn(conn *serverConn) {
	o.mu.Lock()
	mine := o.unusedConn == conn
	if mine {
		o.unusedConn = nil
	}
	o.mu.Unlock()
	if mine {
		_ = conn.Close()
	}
}

// claimConn removes and returns the kept connection, if its protocol is proto; otherwise nil.
func (o *origin) claimConn(proto string) *serverConn {
	o.mu.Lock()
	defer o.mu.Unlock()
	conn := o.unusedConn
	if conn == nil {
		return nil
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != proto && (got != "" || proto != protoH1) {
		return nil
	}
	o.unusedConn = nil
	o.expiry.Stop()
	return conn
}

// dialTLS returns a TLS connection to the server with the ALPN protocol proto, possibly the kept one.
func (o *origin) dialTLS(ctx context.Context, proto string) (net.Conn, error) {
	if conn := o.claimConn(proto); conn != nil {
		return conn, nil
	}
	conn, err := o.handshake(ctx, []string{proto})
	if err != nil {
		o.forgetNegotiated()
		return nil, err
	}
	if got := conn.ConnectionState().NegotiatedProtocol; proto == protoH2 && got != protoH2 {
		_ = conn.Close()
		o.forgetNegotiated()
		return nil, fmt.Errorf("%s %w", o.target.addr, errNoHTTP2)
	}
	return conn, nil
}

// dialH1 opens a connection to the server for HTTP/1.
func (o *origin) dialH1(ctx context.Context) (net.Conn, error) {
	if o.target.scheme == "https" {
		return o.dialTLS(ctx, cmp.Or(o.target.alpn, protoH1))
	}
	return o.dialer.dial(ctx, o.target)
}

// dialForwarder opens a connection to the user's HTTP proxy, to which requests are sent instead of the server.
func (o *origin) dialForwarder(ctx context.Context) (net.Conn, error) {
	return o.dialer.upstream.DialProxy(ctx, o.forwarder)
}

// dialH2 connects to the server for HTTP/2; without TLS, with prior knowledge. The connection is an *h2.Conn,
// or TLS on one.
func (o *origin) dialH2(ctx context.Context) (net.Conn, error) {
	if o.target.scheme == "http" {
		tcp, err := o.dialer.dial(ctx, o.target)
		if err != nil {
			return nil, err
		}
		return &h2.Conn{Conn: tcp}, nil
	}
	if !o.hasNegotiated(protoH2) {
		switch pick, err := o.negotiate(ctx, []string{protoH2, protoH1}); {
		case err != nil:
			return nil, err
		case pick != protoH2:
			return nil, fmt.Errorf("%s %w", o.target.addr, errNoHTTP2)
		}
	}
	return o.dialTLS(ctx, protoH2)
}

// handshake connects to the server and performs the TLS handshake with the offered ALPN protocols. It verifies
// the server's certificate unless Options.UpstreamInsecure is set.
func (o *origin) handshake(ctx context.Context, offer []string) (*serverConn, error) {
	tcp, err := o.dialer.dial(ctx, o.target)
	if err != nil {
		return nil, err
	}
	conn := &serverConn{host: o.target.host(), certificate: o.dialer.certificates.For(o.target.names()...)}
	conn.Conn = tls.Client(&h2.Conn{Conn: raw.NewConn(tcp, nil)}, &tls.Config{
		ServerName:           o.target.host(),
		RootCAs:              o.dialer.trustedRoots,
		NextProtos:           slices.Clone(offer),
		MinVersion:           tls.VersionTLS12,
		KeyLogWriter:         o.dialer.keyLog,
		GetClientCertificate: conn.clientCertificate,

		// captures.TLS.Unverified records it for each exchange.
		InsecureSkipVerify:          o.dialer.insecure, //nolint:gosec // an option
		DynamicRecordSizingDisabled: true,
	})

	// The timeout includes the server's decision about the client certificate.
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err = conn.HandshakeContext(ctx); err == nil {
		err = conn.awaitCertificateResult()
	}
	if err == nil {
		return conn, nil
	}

	// Distinguish the errors that the user can fix.
	_ = tcp.Close()
	var failed *tls.CertificateVerificationError
	switch refused := conn.refusal(err); {
	case errors.As(err, &failed):
		return nil, &untrustedCertificateError{o.target.host(), failed.Err}
	case errors.As(refused, new(*certificateError)):
		return nil, refused
	}
	return nil, fmt.Errorf("TLS with %s failed: %w", o.target.addr, err)
}

// close closes all unused connections.
func (o *origin) close() {
	o.h1.CloseIdleConnections()
	o.mu.Lock()
	parked := o.unusedConn
	o.mu.Unlock()
	if parked != nil {
		o.dropConn(parked)
	}
}

// An originCache contains the origins, i.e. servers, that were used recently (LRU).
type originCache struct {
	// dialer connects to the servers.
	dialer *dialer
	// mu guards lru and byTarget.
	mu sync.Mutex
	// lru is a list of *origin, the most recently used first.
	lru list.List
	// byTarget maps servers to elements of lru.
	byTarget map[target]*list.Element
}

// get returns the origin for a target, which it creates if necessary.
func (c *originCache) get(t target) *origin {
	t = c.dialer.mapped(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byTarget[t]; ok {
		c.lru.MoveToFront(e)
		return e.Value.(*origin)
	}
	o := newOrigin(t, c.dialer)
	c.byTarget[t] = c.lru.PushFront(o)
	if c.lru.Len() > maxOrigins {
		last := c.lru.Remove(c.lru.Back()).(*origin)
		delete(c.byTarget, last.target)
		last.close()
	}
	return o
}

// close closes all origins.
func (c *originCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.lru.Front(); e != nil; e = e.Next() {
		e.Value.(*origin).close()
	}
}

// newOriginCache returns an empty cache, whose origins connect with d.
func newOriginCache(d *dialer) *originCache {
	return &originCache{dialer: d, byTarget: make(map[target]*list.Element)}
}
