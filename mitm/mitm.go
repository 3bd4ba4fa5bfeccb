// Package mitm is the recording proxy. It forwards the traffic between clients and their servers (origins)
// without change or delay, and records it as exchanges. It does not interpret bodies.
//
//	p, err := mitm.New(mitm.Options{CA: authority, Store: store})
//	go p.Serve(listener)
//	…
//	err = p.Shutdown(ctx)
//
// Connections arrive at a listener: as at a proxy (HTTP, CONNECT or SOCKS), as at an origin (reverse),
// transparently, or redirected by a hook in the client. The hook announces the route (package routes) at a
// control endpoint, and may ask whether a server is reachable. Package hosts decides what is recorded;
// everything else is forwarded by goproxy or as a tunnel.
//
// A recorded tunnel is intercepted. Package raw detects the protocol from the first bytes. TLS is terminated
// with a certificate of package ca for the name that the client requests, and with the protocol that the server
// selects from the client's offer. A client that refuses the certificate is recorded as a refusal.
//
// Package h2 relays and records HTTP/2 frame by frame, package h1 HTTP/1 message by message; the files h2.go and
// h1.go start them and route requests. Package raw relays and records everything else. The bytes after a
// protocol switch pass through upgrade.go; package websocket wraps the store and records WebSocket messages.
// relay.go and httpexchange.go handle requests that go through net/http: those of an HTTP/2 client whose server
// has no HTTP/2 or is unreachable.
//
// A target is the server of a connection's requests, and an origin manages the connections to a target. Spare
// connections remain from reachability checks and are used for the next request.
//
// Source: mitm/README.md#how-the-proxy-works
package mitm

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/elazarl/goproxy"

	"unwire/captures"
	"unwire/mitm/access"
	"unwire/mitm/ca"
	"unwire/mitm/clientcert"
	"unwire/mitm/hosts"
	"unwire/mitm/process"
	"unwire/mitm/raw"
	"unwire/mitm/refusal"
	"unwire/mitm/rewrite"
	"unwire/mitm/routes"
	"unwire/mitm/upstream"
)

const (
	readHeaderTimeout = time.Minute
	// idleTimeout is the time after which idle connections of clients are closed, and acceptPause the pause
	// after a failed Accept.
	idleTimeout = 5 * time.Minute
	acceptPause = 50 * time.Millisecond

	// maxStreams limits the concurrent HTTP/2 streams of a client's connection. The server's own limit is
	// usually lower.
	maxStreams = 10_000

	// flushTimeout is how long Shutdown waits for responses that are being written, and stopTimeout for
	// handlers that were cancelled.
	flushTimeout = 250 * time.Millisecond
	stopTimeout  = 2 * time.Second
)

// Options are the options of a proxy.
type Options struct {
	// CA signs the certificates that the proxy presents to clients. Required.
	CA *ca.Authority

	// Store records the exchanges: a *store.Store or a *series.Series. Required. The caller closes it after
	// Shutdown. Exchanges that it cannot begin are forwarded unrecorded; the caller learns about that through
	// store.Options.Failed.
	Store captures.Recorder

	// UpstreamRoots are the CAs that verify servers' certificates; nil means the system's trust store.
	UpstreamRoots *x509.CertPool

	// UpstreamInsecure switches off the verification of servers. Each exchange records that
	// (captures.TLS.Unverified).
	UpstreamInsecure bool

	// UpstreamProxies selects the user's own proxies through which servers are reached; nil means direct
	// connections. The proxies' certificates are always verified.
	UpstreamProxies *upstream.Proxies

	// ClientCertificates are presented to servers that request a client certificate; nil for none.
	ClientCertificates *clientcert.Certificates

	// Reverse, if not nil, makes the listeners a reverse proxy that forwards to this URL, for clients
	// whose endpoint can be configured. They accept HTTP/1.1 and HTTP/2, with and without TLS, and
	// still work as a proxy.
	Reverse *url.URL

	// Source is the value of Exchange.Source for recorded exchanges; "" means "proxy".
	Source string

	// Only and Skip are globs for host or host:port, in which * also matches dots. Hosts that are not in Only
	// (if it is not empty) or that are in Skip are forwarded without decryption. A glob with a path, such as
	// host/path*, in which * also matches slashes, selects requests: a host with such a glob is decrypted, but
	// its other requests are not recorded.
	Only, Skip []string

	// Share lets other users of this machine use the listeners.
	Share bool
	// RefusedUser, if set, is called for the first connection of each user who is refused.
	RefusedUser func(access.User)

	// CertificateRefused, if set, is called for the first time that a program refuses the proxy's certificate
	// for a server. The exchange is recorded as failed.
	CertificateRefused func(refusal.Refusal)

	// ControlToken is the secret that requests to the proxy's control endpoints must contain. By these, the
	// hook in a launched Node program redirects its connections. The token must have at least 16 bytes, be new
	// for each run, and be known only to that program. If it is "", the listeners have no control endpoints.
	//
	// Source: mitm/README.md#node-hook
	ControlToken string

	// RouteConflict, if set, is called when the hook announces a second destination for a redirected
	// connection.
	RouteConflict func(RouteConflict)

	// Rewrite, if not nil, selects the exchanges that are changed before they are forwarded, and the rules for
	// them.
	Rewrite rewrite.Policy

	// KeyLog receives the secrets of all TLS sessions, with clients and servers, in NSS key log format. They
	// decrypt packet captures of either side. nil disables it.
	KeyLog io.Writer

	// Logger, if not nil, receives diagnostic messages.
	Logger *slog.Logger
}

// A RouteConflict describes a refused announcement of the Node hook: the redirected connection has a
// destination already.
type RouteConflict struct {
	// Port is the client's local port of the connection.
	Port int

	// To is the destination of the connection, host:port.
	To string

	// Refused is the destination in the refused announcement, host:port.
	Refused string
}

// A Proxy forwards and records traffic. New creates it.
type Proxy struct {
	// opts are the options of the proxy.
	opts Options
	// log receives diagnostic messages; never nil.
	log *slog.Logger
	// hosts selects the hosts and requests that are recorded.
	hosts hosts.Filter
	// dialer connects to servers.
	dialer *dialer

	// origins are the servers to which requests were sent recently.
	origins *originCache
	// routes are the destinations of connections that the Node hook redirects to the proxy.
	routes *routes.Table
	// buffers contains reusable buffers of type *[chunkSize]byte.
	buffers sync.Pool

	// processes finds the client program of each connection.
	processes *process.Finder

	// guard decides which local users may connect.
	guard *access.Guard
	// refusals reports programs that refuse the proxy's certificate.
	refusals refusal.Log
	// redirects contains the listener for connections that the Node hook redirects. It is opened when it is
	// first needed.
	redirects struct {
		sync.Mutex
		listener net.Listener
		closed   bool
	}

	// passthrough handles CONNECT requests, and forwards traffic that is not recorded.
	passthrough *goproxy.ProxyHttpServer

	// frontServer serves the HTTP connections of the listeners.
	frontServer *http.Server
	// tunnelServer serves the decrypted contents of tunnels.
	tunnelServer *http.Server
	// tunnelled is the queue of the connections that tunnelServer accepts.
	tunnelled *connQueue

	// ctx ends when everything that is still running must be cut off.
	ctx context.Context
	// stop ends ctx.
	stop context.CancelCauseFunc

	// draining is a context that ends before ctx during shutdown: then connections without exchanges, which never end
	// by themselves, are cut off.
	draining context.Context
	// stopRaw ends draining.
	stopRaw context.CancelCauseFunc

	// mu guards the fields below.
	mu sync.Mutex
	// started means that tunnelServer was started.
	started bool
	// stopping means that no new exchanges are admitted.
	stopping bool

	// idle is closed during shutdown when no exchange is running any more.
	idle chan struct{}
	// runningExchanges is the number of exchanges that have not ended.
	runningExchanges int

	// trackedConns are the open connections that no http.Server manages.
	trackedConns map[net.Conn]struct{}

	// relays are the running relays of client connections.
	relays map[relay]struct{}
	// relayGroup waits for the goroutines of relays.
	relayGroup sync.WaitGroup

	// ownAddrs are the addresses to which the proxy does not connect: those of its listeners, and those passed
	// to Refuse.
	ownAddrs []*net.TCPAddr

	// transparentListeners are the listeners passed to ServeTransparent.
	transparentListeners []net.Listener

	// pendingRefusals are functions that decide, after a delay, whether clients that closed an unused
	// connection have refused the certificate.
	pendingRefusals []func()
}

// addListener registers a listener's address as the proxy's own. It returns false during shutdown.
func (p *Proxy) addListener(ln net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		p.ownAddrs = append(p.ownAddrs, a)
	}
	p.startTunnelServer()
	return true
}

// Refuse makes the proxy refuse connections to an address, under any host name that resolves to it. It protects
// servers in this process, such as the web interface, from web pages whose traffic is recorded.
func (p *Proxy) Refuse(addr net.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := addr.(*net.TCPAddr); ok {
		p.ownAddrs = append(p.ownAddrs, a)
	}
}

// startTunnelServer starts tunnelServer, if it is not running. The caller has locked p.mu.
func (p *Proxy) startTunnelServer() {
	if !p.started {
		p.started = true
		go func() { _ = p.tunnelServer.Serve(p.tunnelled) }()
	}
}

// isOwnAddress reports whether an address is that of one of the proxy's listeners, or was passed to Refuse.
func (p *Proxy) isOwnAddress(to *net.TCPAddr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, own := range p.ownAddrs {
		if own.Port == to.Port && (own.IP.Equal(to.IP) || own.IP.IsUnspecified() && isLocal(to.IP)) {
			return true
		}
	}
	return false
}

// isLocal reports whether an IP address belongs to this machine.
func isLocal(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// beginRunning counts a running exchange. It returns false during shutdown.
func (p *Proxy) beginRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.runningExchanges++
	return true
}

// endRunning counts an exchange as ended.
func (p *Proxy) endRunning() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runningExchanges--; p.runningExchanges == 0 && p.stopping {
		close(p.idle)
	}
}

// track registers a connection that no http.Server manages, so that Shutdown closes it, until untrack is
// called.
func (p *Proxy) track(c net.Conn) (untrack func()) {
	p.mu.Lock()
	p.trackedConns[c] = struct{}{}
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		delete(p.trackedConns, c)
		p.mu.Unlock()
	}
}

// wrapClient wraps a client's connection, which Shutdown will close. The client program is looked up in
// sockets; nil means the network namespace of this process. released, if set, is called when the connection is
// closed.
func (p *Proxy) wrapClient(conn net.Conn, sockets *process.Sockets, released func()) *clientConn {
	c := &clientConn{Conn: raw.NewConn(conn, nil), recorder: p.processes.Recorder(conn, sockets, p.opts.Store)}
	untrack := p.track(c)
	c.onClose = func() {
		untrack()
		if released != nil {
			released()
		}
	}
	if p.ctx.Err() != nil {
		_ = c.Close()
	}
	return c
}

// errRecordingStopped is the recorded reason for exchanges that a shutdown cut off.
var errRecordingStopped = errors.New("recording stopped")
