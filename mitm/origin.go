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
	dialTimeout       = 30 * time.Second
	handshakeTimeout  = 15 * time.Second
	idleConnTimeout   = 90 * time.Second
	unusedConnTimeout = 5 * time.Second

	// clearTimeout is how long a server without TLS has to answer to HTTP/2.
	clearTimeout = 2 * time.Second

	maxIdlePerOrigin = 256
	maxOrigins       = 512

	protoH2 = "h2"
	protoH1 = "http/1.1"

	// protoOldH1 is offered by clients that are told to use HTTP/1.0.
	protoOldH1 = "http/1.0"
)

// errOwnAddress ends a loop: the proxy was asked to connect to itself.
var errOwnAddress = errors.New("the request is for the proxy itself")

// errNoHTTP2 refuses an HTTP/2 connection to a server that does not speak it.
var errNoHTTP2 = errors.New("does not speak HTTP/2")

// An untrusted error says that a server's certificate did not verify.
type untrustedError struct {
	host string
	err  error
}

func (e *untrustedError) Error() string {
	return fmt.Sprintf("the certificate of %s is not trusted: %v", e.host, e.err)
}

func (e *untrustedError) Unwrap() error { return e.err }

// An origin is a server as the clients name it. What a client speaks is what
// its server gets: HTTP/1 through the transport, HTTP/2 through a relay, on a
// connection of its own. An HTTP/2 client gets HTTP/1 only from a server that
// has no HTTP/2, which happens where the client could not learn it: in front
// of a reverse proxy, or when the server has lost it.
type origin struct {
	target target
	dialer *dialer
	h1     *http.Transport

	// forwarder is the HTTP proxy that requests are sent to, instead of to the
	// server; nil: none.
	forwarder *url.URL

	// gotRequest says that a client has sent a request.
	gotRequest atomic.Bool

	negotiations singleflight.Group
	mu           sync.Mutex

	// negotiated has the protocol that the server picked from each offer.
	negotiated map[string]string

	// unusedConn is left from negotiating, for the first request to use until expiry.
	unusedConn *serverConn
	expiry     *time.Timer
}

// newOrigin builds the transport from nothing: a cloned one keeps "h2".
func newOrigin(t target, d *dialer) *origin {
	o := &origin{target: t, dialer: d, negotiated: make(map[string]string)}
	o.h1 = &http.Transport{
		DialContext:           func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx, t) },
		DialTLSContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return o.dialTLS(ctx, protoH1) },
		DisableCompression:    true, // the headers stay as they are
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

// useForwarder has requests sent to an HTTP proxy. One for another host than the
// connection was opened to, or for another protocol, goes through a tunnel all the
// same: the proxy would send it elsewhere, or drop the upgrade.
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
	// The transport asks for TLS with the proxy only.
	o.h1.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return o.dialer.upstream.DialProxy(ctx, proxy)
	}
}

func (o *origin) forwarderOf(r *http.Request) *url.URL {
	if upgradeOf(r.Header) != "" || !strings.EqualFold(withPort(r.Host, "80"), o.target.addr) {
		return nil
	}
	return o.forwarder
}

// roundTrip is sendOnce by HTTP/1.
//
// Errors: *upstream.Error also where a proxy answered in the server's place.
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

// negotiate returns the protocol that the server picks from an offer, "" for none.
// The server is asked once for each offer, and the connection is kept a while. One
// without TLS picks HTTP/2 if that is offered alone, or if it answers to it.
func (o *origin) negotiate(ctx context.Context, offer []string) (string, error) {
	key := strings.Join(offer, ",")
	o.mu.Lock()
	pick, known := o.negotiated[key]
	o.mu.Unlock()
	if known {
		return pick, nil
	}
	answer, err, _ := o.negotiations.Do(key, func() (any, error) {
		// Others wait for this answer, so it does not end with one of them.
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

// negotiateClear is negotiate for a server without TLS.
func (o *origin) negotiateClear(ctx context.Context, offer []string) (string, error) {
	pick := offer[0]
	if slices.Contains(offer, protoH2) && len(offer) > 1 {
		raw, err := o.dialer.dial(ctx, o.target)
		if err != nil {
			return "", err
		}
		pick = protoH1
		if h2.Answers(raw, clearTimeout) {
			pick = protoH2
		}
		_ = raw.Close()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.negotiated[strings.Join(offer, ",")] = pick
	return pick, nil
}

// hasNegotiated reports whether the server has picked a protocol from any offer.
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

// forgetNegotiated has the protocol negotiated again: the server has changed.
func (o *origin) forgetNegotiated() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.negotiated)
}

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

// claimConn returns the unused connection, if it speaks proto.
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

// dialH1 connects to the server for HTTP/1.
func (o *origin) dialH1(ctx context.Context) (net.Conn, error) {
	if o.target.scheme == "https" {
		return o.dialTLS(ctx, cmp.Or(o.target.alpn, protoH1))
	}
	return o.dialer.dial(ctx, o.target)
}

// dialForwarder connects to the proxy that requests are sent to.
func (o *origin) dialForwarder(ctx context.Context) (net.Conn, error) {
	return o.dialer.upstream.DialProxy(ctx, o.forwarder)
}

// dialH2 connects to a server that speaks HTTP/2, in clear by prior knowledge. The
// connection is a *h2.Conn, or TLS on one.
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

// handshake connects and verifies the server's certificate, unless told not to.
func (o *origin) handshake(ctx context.Context, offer []string) (*serverConn, error) {
	tcp, err := o.dialer.dial(ctx, o.target)
	if err != nil {
		return nil, err
	}
	conn := &serverConn{host: o.target.host(), certificate: o.dialer.certificates.For(o.target.names()...)}
	conn.Conn = tls.Client(&h2.Conn{Conn: raw.NewConn(tcp, nil)}, &tls.Config{
		ServerName:           o.target.host(),
		RootCAs:              o.dialer.roots,
		NextProtos:           slices.Clone(offer),
		MinVersion:           tls.VersionTLS12,
		KeyLogWriter:         o.dialer.keyLog,
		GetClientCertificate: conn.clientCertificate,

		// Each exchange records it.
		InsecureSkipVerify:          o.dialer.insecure, //nolint:gosec // an option
		DynamicRecordSizingDisabled: true,
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err = conn.HandshakeContext(ctx); err == nil {
		err = conn.awaitVerdict()
	}
	if err == nil {
		return conn, nil
	}
	_ = tcp.Close()
	var failed *tls.CertificateVerificationError
	switch refused := conn.refusal(err); {
	case errors.As(err, &failed):
		return nil, &untrustedError{o.target.host(), failed.Err}
	case errors.As(refused, new(*certificateError)):
		return nil, refused
	}
	return nil, fmt.Errorf("TLS with %s: %w", o.target.addr, err)
}

func (o *origin) close() {
	o.h1.CloseIdleConnections()
	o.mu.Lock()
	parked := o.unusedConn
	o.mu.Unlock()
	if parked != nil {
		o.dropConn(parked)
	}
}

// An originCache holds the origins in use, the least recently used going first.
type originCache struct {
	dialer   *dialer
	mu       sync.Mutex
	recent   list.List // of *origin
	byTarget map[target]*list.Element
}

func (c *originCache) get(t target) *origin {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byTarget[t]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*origin)
	}
	o := newOrigin(t, c.dialer)
	c.byTarget[t] = c.recent.PushFront(o)
	if c.recent.Len() > maxOrigins {
		last := c.recent.Remove(c.recent.Back()).(*origin)
		delete(c.byTarget, last.target)
		last.close()
	}
	return o
}

func (c *originCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.recent.Front(); e != nil; e = e.Next() {
		e.Value.(*origin).close()
	}
}

func newOriginCache(d *dialer) *originCache {
	return &originCache{dialer: d, byTarget: make(map[target]*list.Element)}
}
