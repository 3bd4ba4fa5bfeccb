// Package mitm is the recording proxy: what clients and servers say to each
// other passes through it byte for byte and without delay, and is recorded as
// it passes.
//
// goproxy is the front: it routes, answers CONNECT, and carries what is not
// recorded. In a recorded tunnel may be TLS (with a certificate made for the
// name that the client asks for, and the protocol that the server picks from
// the client's offer) or not, and in that HTTP. Anything else is passed on
// unread.
//
// HTTP/2, in TLS or with prior knowledge, is relayed frame by frame between one
// connection of the client and one to the server, nothing being changed:
// SETTINGS, PING, PRIORITY, windows, reset codes, header blocks and frames that
// nobody knows are the other side's own. HTTP/1 ends in a net/http server, as
// does an HTTP/2 client whose server cannot be reached, to be told so.
//
// Limits: over HTTP/1, header fields are recorded in the order of their names,
// and their case is not passed on. HTTP/2 is not passed on any more after a
// header block that HPACK does not explain, a header section of more than 8 MiB,
// or a frame of more than 1 MiB that is not DATA; a header table of more than
// 1 MiB is not offered.
//
// Source: RESEARCH.md#proxy
package mitm

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elazarl/goproxy"

	"unwire/captures"
	"unwire/mitm/ca"
	"unwire/mitm/h2"
)

const (
	readHeaderTimeout = time.Minute
	idleTimeout       = 5 * time.Minute
	acceptPause       = 50 * time.Millisecond
	maxStreams        = 10_000                 // on one connection: the server's own limit holds behind it
	flushGrace        = 250 * time.Millisecond // for answers on their way out
	stopGrace         = 2 * time.Second        // for handlers that were told to end
)

// Options say what a Proxy is to do.
type Options struct {
	CA *ca.Authority // required

	// Store is required; the caller closes it, after Shutdown. What it fails to
	// begin passes unrecorded: that is for the store's owner to know and to tell
	// (captures.Options.Failed).
	Store Recorder

	// UpstreamRoots are the CAs trusted for servers; nil means the system's.
	UpstreamRoots *x509.CertPool

	// UpstreamInsecure has servers not verified at all. Each exchange says so
	// (captures.TLS.Unverified).
	UpstreamInsecure bool

	// Reverse makes the listener a server in front of this origin, for clients
	// whose endpoint can be set. It speaks HTTP/1.1 and HTTP/2 in clear, and
	// works as a proxy too.
	Reverse *url.URL

	Source string // of the recorded exchanges; "" means "proxy"

	// Only and Skip are globs for hosts or host:port, * spanning dots: hosts
	// that are not in Only (if it has any) or that are in Skip pass unread. A
	// glob with a path, host/path*, * spanning slashes, is for requests: those
	// of a host that are left out by their path alone are decrypted, to know
	// it, and pass unrecorded.
	Only, Skip []string

	// ControlToken is the secret that requests for the control endpoints carry,
	// by which a launched program's hook redirects its connections: 16 bytes or
	// more, new for each run, known to that program only. "", the default: the
	// listeners have no control endpoints.
	//
	// Source: RESEARCH.md#node-hook
	ControlToken string

	// RouteConflict, if set, is called when an address was announced for a
	// connection that has one already.
	RouteConflict func(RouteConflict)

	// KeyLog gets the secrets of all TLS sessions, the clients' and the
	// servers', in NSS key log format: with them a packet capture of either
	// side can be decrypted. Nil, the default, writes none.
	KeyLog io.Writer

	Logger *slog.Logger // nil: silence
}

// A Recorder takes exchanges in: a *captures.Store or a *captures.Series.
type Recorder interface {
	Begin(captures.Exchange) (*captures.Recording, error)
}

// A Proxy records the traffic that passes through it.
type Proxy struct {
	opts    Options
	log     *slog.Logger
	hosts   hostFilter
	dialer  *dialer
	origins *originCache
	routes  *routeTable
	buffers sync.Pool // of *[chunkSize]byte

	gate  *goproxy.ProxyHttpServer
	front *http.Server // what comes in through the listeners
	inner *http.Server // what comes through tunnels
	conns *connQueue   // ... and how it gets there

	ctx  context.Context // ends when what still runs is cut off
	stop context.CancelCauseFunc

	mu       sync.Mutex
	started  bool
	stopping bool
	running  int           // exchanges
	quiet    chan struct{} // closed when stopping and none is running
	open     map[net.Conn]struct{}
	relays   map[*h2.Relay]struct{}
	relaying sync.WaitGroup // of relays
	addrs    []*net.TCPAddr // the proxy's own
	taps     []net.Listener // of ServeTransparent
	hushed   []func()       // connections that ended without a word, to be judged
}

// New makes a proxy; Serve starts it.
func New(o Options) (*Proxy, error) {
	switch {
	case o.CA == nil:
		return nil, errors.New("mitm: Options.CA is missing")
	case o.Store == nil:
		return nil, errors.New("mitm: Options.Store is missing")
	case o.Reverse != nil:
		if err := checkOrigin(o.Reverse); err != nil {
			return nil, err
		}
	}
	if n := len(o.ControlToken); n > 0 && n < minControlToken {
		return nil, fmt.Errorf("mitm: Options.ControlToken has %d bytes: want %d or more", n, minControlToken)
	}
	if o.Source == "" {
		o.Source = "proxy"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	hosts, err := newHostFilter(o.Only, o.Skip)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		opts: o, log: o.Logger, hosts: hosts,
		conns: newConnQueue(), routes: newRouteTable(),
		quiet: make(chan struct{}), open: make(map[net.Conn]struct{}), relays: make(map[*h2.Relay]struct{}),
	}
	p.buffers.New = func() any { return new([chunkSize]byte) }
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.dialer = &dialer{Dialer: net.Dialer{Timeout: dialTimeout}, roots: o.UpstreamRoots, insecure: o.UpstreamInsecure, keyLog: o.KeyLog, itself: p.isItself}
	p.origins = newOriginCache(p.dialer)
	p.gate = p.newGate()
	p.front = p.newServer(http.HandlerFunc(p.serveFront), false)
	p.front.ConnContext = withClient
	p.inner = p.newServer(http.HandlerFunc(p.serveTunnelled), true)
	p.inner.ConnContext = withClient
	return p, nil
}

func (p *Proxy) newServer(h http.Handler, http2 bool) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(http2)
	s.Protocols.SetUnencryptedHTTP2(http2)
	return s
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
		p.addrs = append(p.addrs, a)
	}
	p.startInner()
	return true
}

// startInner starts what is behind the listeners; p.mu is held.
func (p *Proxy) startInner() {
	if !p.started {
		p.started = true
		go func() { _ = p.inner.Serve(p.conns) }()
	}
}

// isItself reports whether an address that was connected to is one of the
// proxy's own.
func (p *Proxy) isItself(to *net.TCPAddr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, own := range p.addrs {
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

// Shutdown takes no more connections, lets the exchanges end that are running,
// and when ctx ends cuts off what is left, recorded as incomplete. All of it is
// recorded when Shutdown returns.
//
// Errors: that of ctx, if something was cut off.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.decideHushed()
	p.mu.Lock()
	if !p.stopping {
		p.stopping = true
		if p.running == 0 {
			close(p.quiet)
		}
	}
	for _, ln := range p.taps {
		_ = ln.Close()
	}
	for r := range p.relays {
		go r.Drain()
	}
	p.mu.Unlock()
	p.routes.close()

	graceful, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var both sync.WaitGroup // all three
		both.Go(func() { _ = p.front.Shutdown(graceful) })
		both.Go(func() { _ = p.inner.Shutdown(graceful) })
		both.Go(p.relaying.Wait)
		both.Wait()
	}()
	var cut error
	select {
	case <-p.quiet:
		select { // what was answered last is still being written
		case <-ended:
		case <-time.After(flushGrace):
		case <-ctx.Done():
		}
	case <-ctx.Done():
		cut = ctx.Err()
	}
	p.stop(errStopped)
	select {
	case <-p.quiet:
	case <-time.After(stopGrace):
	}
	_ = p.front.Close()
	_ = p.inner.Close()
	_ = p.conns.Close()
	p.origins.close()
	p.dialer.spares.close()
	p.mu.Lock()
	left := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	return cut
}

// enter counts an exchange, unless the proxy is stopping.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.running++
	return true
}

func (p *Proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running--; p.running == 0 && p.stopping {
		close(p.quiet)
	}
}

// track notes a connection that no http.Server knows, so that Shutdown closes it.
func (p *Proxy) track(c net.Conn) (untrack func()) {
	p.mu.Lock()
	p.open[c] = struct{}{}
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
	}
}

type clientKey struct{}

// withClient hands a client's connection to its requests.
func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, clientOf(c))
}

// serveTunnelled relays a request that came through a tunnel.
func (p *Proxy) serveTunnelled(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*clientConn)
	if c.origin != nil { // by HTTP/2, where the origin has none
		p.serveReverse(w, r, c.origin)
		return
	}
	t := c.target
	shown := *r.URL
	shown.Scheme, shown.Host = t.scheme, r.Host
	if shown.Host == "" {
		shown.Host = t.addr
	}
	p.relay(w, r, t, &shown)
}

// serveReverse relays a request to the origin that the listener stands before.
func (p *Proxy) serveReverse(w http.ResponseWriter, r *http.Request, origin *url.URL) {
	shown := *r.URL
	shown.Scheme, shown.Host = origin.Scheme, origin.Host
	if prefix := strings.TrimSuffix(origin.Path, "/"); prefix != "" {
		shown.RawPath = strings.TrimSuffix(origin.EscapedPath(), "/") + r.URL.EscapedPath()
		shown.Path = prefix + r.URL.Path
	}
	p.relay(w, r, targetOf(origin), &shown)
}

// targetOf is where the requests for a URL go.
func targetOf(u *url.URL) target {
	if u.Scheme == "https" {
		return target{scheme: "https", addr: withPort(u.Host, "443"), sni: sniOf(u.Hostname())}
	}
	return target{scheme: "http", addr: withPort(u.Host, "80")}
}

// sniOf is the server name sent for a host: none for an address.
func sniOf(host string) string {
	if net.ParseIP(host) != nil {
		return ""
	}
	return host
}
