// Package mitm is the recording proxy. Clients connect to it, it connects to their
// servers (origins), and the bytes in between are forwarded without change or delay
// and handed to a store, one exchange at a time. It interprets no bodies. Its
// lifecycle is New, Serve for each listener, and Shutdown, which drains.
//
// Connections come through a listener: as to a proxy (HTTP, CONNECT or SOCKS), as to
// an origin (reverse), transparently, or redirected by a hook in the client, which
// announces the route (package routes) at a control endpoint and may ask whether a server
// is reachable. Package hosts decides what is recorded; the rest is forwarded unread,
// by goproxy at the front or as a tunnel. A recorded tunnel is intercepted: package raw
// sniffs the first bytes; TLS ends here with a certificate of package ca for the name that
// the client asks for, and the protocol that the server picks from the client's
// offer. A client that refuses the certificate is recorded as a refusal. File conn has
// the connections of clients, and copies tunnels that are not recorded.
//
// What is not HTTP, in TLS or in clear, is passed on as it is and recorded by package
// raw; file rawconn finds its server. HTTP/2 is relayed frame by frame and recorded by
// package h2, HTTP/1 message by message by package h1; files h2 and h1 here start that, and
// say where a request goes. Bytes of a changed protocol pass through upgrade; package
// websocket stands before the store and makes messages of what is recorded of a WebSocket.
// File httpexchange records, and relay forwards, what goes through net/http: the requests
// of an HTTP/2 client whose server has no HTTP/2, or cannot be reached. A target is the
// server of a connection's requests, its origin the connections to that. Spare connections
// come from tests of reachability, for the next request.
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
	"unwire/mitm/routes"
	"unwire/mitm/upstream"
)

const (
	readHeaderTimeout = time.Minute
	idleTimeout       = 5 * time.Minute
	acceptPause       = 50 * time.Millisecond

	// maxStreams is on one connection: the server's own limit holds behind it.
	maxStreams = 10_000

	// flushTimeout is for answers on their way out, stopTimeout for handlers that
	// were told to end.
	flushTimeout = 250 * time.Millisecond
	stopTimeout  = 2 * time.Second
)

// Options say what a Proxy is to do.
type Options struct {
	// CA is required.
	CA *ca.Authority

	// Store is required: a *store.Store or a *series.Series. The caller closes
	// it, after Shutdown. What it fails to begin passes unrecorded: that is for the
	// store's owner to know and to report (store.Options.Failed).
	Store captures.Recorder

	// UpstreamRoots are the CAs trusted for servers; nil means the system's.
	UpstreamRoots *x509.CertPool

	// UpstreamInsecure has servers not verified at all. Each exchange says so
	// (captures.TLS.Unverified).
	UpstreamInsecure bool

	// UpstreamProxies choose the proxies that servers are reached through; nil, the
	// default, means directly. Their certificates are always verified.
	UpstreamProxies *upstream.Proxies

	// ClientCertificates are shown to servers that ask for one.
	ClientCertificates *clientcert.Certificates

	// Reverse makes the listener a server in front of this origin, for clients
	// whose endpoint can be set. It speaks HTTP/1.1 and HTTP/2, in clear and in
	// TLS, and works as a proxy too.
	Reverse *url.URL

	// Source is that of the recorded exchanges; "" means "proxy".
	Source string

	// Only and Skip are globs for hosts or host:port, * spanning dots: hosts
	// that are not in Only (if it has any) or that are in Skip pass unread. A
	// glob with a path, host/path*, * spanning slashes, is for requests: those
	// of a host that are left out by their path alone are decrypted, to know
	// it, and pass unrecorded.
	Only, Skip []string

	// Share admits other users of this machine to the listeners of Serve and
	// ServeReverse. RefusedUser, if set, is called for the first one of each who is not
	// admitted.
	Share       bool
	RefusedUser func(access.User)

	// CertificateRefused, if set, is called for the first connection of a program to a
	// server for which it does not accept the proxy's certificate. The exchange is
	// recorded as failed.
	CertificateRefused func(refusal.Refusal)

	// ControlToken is the secret that requests for the control endpoints carry,
	// by which a launched program's hook redirects its connections: 16 bytes or
	// more, new for each run, known to that program only. "", the default: the
	// listeners have no control endpoints.
	//
	// Source: mitm/README.md#node-hook
	ControlToken string

	// RouteConflict, if set, is called when an address was announced for a
	// connection that has one already.
	RouteConflict func(RouteConflict)

	// KeyLog gets the secrets of all TLS sessions, the clients' and the
	// servers', in NSS key log format: with them a packet capture of either
	// side can be decrypted. Nil, the default, writes none.
	KeyLog io.Writer

	// Logger, if set, is told what happens.
	Logger *slog.Logger
}

// A RouteConflict is an announcement that was refused, because the connection
// has a route already.
type RouteConflict struct {
	// Port is the local one of the connection's client.
	Port int

	// To is where the connection goes, host:port.
	To string

	// Refused is where the refused announcement would send it, host:port.
	Refused string
}

// A Proxy records the traffic that passes through it.
type Proxy struct {
	opts    Options
	log     *slog.Logger
	hosts   hosts.Filter
	dialer  *dialer
	origins *originCache
	routes  *routes.Table
	buffers sync.Pool // of *[chunkSize]byte

	// processes finds the programs of the clients.
	processes *process.Finder
	guard     *access.Guard
	refusals  refusal.Log
	// redirects guards the listener of redirected connections; nil: not opened yet.
	redirects struct {
		sync.Mutex
		listener net.Listener
		closed   bool
	}

	// passthrough answers CONNECT and carries what is not recorded.
	passthrough *goproxy.ProxyHttpServer

	// frontServer serves what comes in through the listeners, tunnelServer what
	// comes through tunnels and is queued in tunnelled.
	frontServer  *http.Server
	tunnelServer *http.Server
	tunnelled    *connQueue

	// ctx ends when what still runs is cut off.
	ctx  context.Context
	stop context.CancelCauseFunc

	// draining ends before, when what has no end of its own is cut off.
	draining context.Context
	drainRaw context.CancelCauseFunc

	mu       sync.Mutex
	started  bool
	stopping bool

	// idle is closed when the proxy is stopping and no exchange runs.
	idle             chan struct{}
	runningExchanges int

	// trackedConns are the connections that no http.Server knows.
	trackedConns map[net.Conn]struct{}

	relays     map[relay]struct{}
	relayGroup sync.WaitGroup

	// ownAddrs are the addresses of the proxy's listeners.
	ownAddrs []*net.TCPAddr

	// transparentListeners are those of ServeTransparent.
	transparentListeners []net.Listener

	// pendingRefusals decide for connections that were closed unused whether their
	// clients refused the certificate.
	pendingRefusals []func()
}

// addListener notes an address of the proxy's own, and starts what is behind
// the listeners with the first one.
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

// startTunnelServer starts the server of what comes through tunnels; p.mu is held.
func (p *Proxy) startTunnelServer() {
	if !p.started {
		p.started = true
		go func() { _ = p.tunnelServer.Serve(p.tunnelled) }()
	}
}

// isOwnAddress reports whether an address that was connected to is one of the
// proxy's own.
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

// admitExchange counts an exchange, unless the proxy is stopping.
func (p *Proxy) admitExchange() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.runningExchanges++
	return true
}

func (p *Proxy) releaseExchange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runningExchanges--; p.runningExchanges == 0 && p.stopping {
		close(p.idle)
	}
}

// track notes a connection that no http.Server knows, so that Shutdown closes it.
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

// wrapClient wraps a client's connection, which Shutdown closes. The client is among the
// sockets; nil: those of this program's own network. released, unless it is nil, is called
// when the connection is closed.
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

// errStopped is the cause of what ends because recording ends.
var errRecordingStopped = errors.New("recording stopped")
