package mitm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"unwire/captures/websocket"
	"unwire/mitm/access"
	"unwire/mitm/h1"
	"unwire/mitm/hosts"
	"unwire/mitm/process"
	"unwire/mitm/routes"
	"unwire/mitm/upstream"
)

// New returns a recording proxy. It accepts connections once Serve is called.
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
	var vouched func(host string) bool
	if len(o.CA.Hosts()) > 0 {
		vouched = o.CA.MayIssueFor
	}
	filter, err := hosts.New(o.Only, o.Skip, vouched)
	if err != nil {
		return nil, fmt.Errorf("mitm: %w", err)
	}
	o.Store = websocket.NewRecorder(o.Store)

	// The dialer and the servers refer to the proxy, so they are added below.
	p := &Proxy{
		processes: process.NewFinder(),
		opts:      o, log: o.Logger, hosts: filter,
		tunnelled: newConnQueue(), routes: routes.New(),
		idle: make(chan struct{}), trackedConns: make(map[net.Conn]struct{}), relays: make(map[relay]struct{}),
	}
	p.guard = &access.Guard{Finder: p.processes, Share: o.Share, Refused: o.RefusedUser}
	p.refusals.Report = o.CertificateRefused
	p.buffers.New = func() any { return new([chunkSize]byte) }
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.draining, p.stopRaw = context.WithCancelCause(p.ctx)
	p.dialer = &dialer{
		rewrite: o.Rewrite,
		Dialer:  net.Dialer{Timeout: dialTimeout}, trustedRoots: o.UpstreamRoots, insecure: o.UpstreamInsecure, keyLog: o.KeyLog,
		isOwnAddress: p.isOwnAddress, certificates: o.ClientCertificates, id: rand.Text(),
	}
	p.dialer.upstream = upstream.Dialer{Proxies: o.UpstreamProxies, Direct: p.dialer.dialDirect, Roots: o.UpstreamRoots}
	p.origins = newOriginCache(p.dialer)
	p.passthrough = p.newPassthrough()

	// Two servers: one for proxy requests, one for the contents of tunnels.
	p.frontServer = p.newServer(http.HandlerFunc(p.serveFront), false)
	p.frontServer.ConnContext = withClient
	p.frontServer.ConnState = func(conn net.Conn, state http.ConnState) {
		if front, ok := conn.(*h1.Front); ok && state == http.StateIdle {
			front.Idle()
		}
	}
	p.tunnelServer = p.newServer(http.HandlerFunc(p.serveTunnelled), true)
	p.tunnelServer.ConnContext = withClient
	return p, nil
}

// newServer returns an HTTP server with the proxy's timeouts. http2 makes it support HTTP/2.
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

// Shutdown stops accepting connections and waits for running exchanges. When ctx ends, Shutdown cuts off the
// remaining exchanges, which are recorded as incomplete. Everything is recorded when Shutdown returns.
//
// Errors: that of ctx, if an exchange was cut off.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.decidePendingRefusals()
	p.stopAdmitting()
	cut := p.drain(ctx)

	// Handlers of exchanges that are cut off need some time to record it.
	p.stop(errRecordingStopped)
	select {
	case <-p.idle:
	case <-time.After(stopTimeout):
	}

	p.closeConnections()
	p.processes.Close()
	return cut
}

// stopAdmitting closes the listeners and refuses new exchanges on open connections.
func (p *Proxy) stopAdmitting() {
	p.mu.Lock()
	if !p.stopping {
		p.stopping = true
		if p.runningExchanges == 0 {
			close(p.idle)
		}
	}
	for _, ln := range p.transparentListeners {
		_ = ln.Close()
	}
	for r := range p.relays {
		go r.Drain()
	}
	p.mu.Unlock()
	p.stopRaw(errRecordingStopped)
	p.closeRedirects()
}

// drain waits for running exchanges, and then a short time for their connections to close.
//
// Errors: that of ctx, if exchanges are still running when it ends.
func (p *Proxy) drain(ctx context.Context) error {
	graceful, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all sync.WaitGroup
		all.Go(func() { _ = p.frontServer.Shutdown(graceful) })
		all.Go(func() { _ = p.tunnelServer.Shutdown(graceful) })
		all.Go(p.relayGroup.Wait)
		all.Wait()
	}()

	select {
	case <-p.idle:
	case <-ctx.Done():
		return ctx.Err()
	}

	// The last responses may still be being written.
	select {
	case <-ended:
	case <-time.After(flushTimeout):
	case <-ctx.Done():
	}
	return nil
}

// closeConnections closes all connections that are still open.
func (p *Proxy) closeConnections() {
	_ = p.frontServer.Close()
	_ = p.tunnelServer.Close()
	_ = p.tunnelled.Close()
	p.origins.close()
	p.dialer.spares.Close()
	p.mu.Lock()
	left := slices.Collect(maps.Keys(p.trackedConns))
	p.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
}
