package mitm

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"unwire/captures"
	"unwire/mitm/h2"
	"unwire/mitm/raw"
	"unwire/mitm/rewrite"
)

// interceptH2 relays the frames of an HTTP/2 client to the server t, if that supports HTTP/2 too. Otherwise
// net/http serves the client. conn is an *h2.Conn on the client's connection, or TLS on one; head are bytes
// that were already read from it.
func (p *Proxy) interceptH2(c *clientConn, conn net.Conn, head []byte, t target, origin *url.URL) {
	buf, err := h2.ReadPreface(raw.NewConn(conn, head), readHeaderTimeout)
	if err != nil {
		_ = conn.Close()
		return
	}

	// Connect to the server first: its protocol decides how to serve the client.
	o := p.origins.get(t)
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	server, err := o.dialH2(ctx)
	if err != nil {
		o.gotRequest.Store(true)
		c.target, c.origin, c.unreachedErr = t, origin, err
		if errors.Is(err, errNoHTTP2) {
			// HTTP/1 is possible.
			c.unreachedErr = nil
		}
		p.tunnelled.push(raw.NewConn(conn, buf))
		return
	}

	r := h2.New(h2.Config{
		Client: conn, Server: server, Origin: origin,
		Begin: p.beginH2(c, o, t, captures.Exchange{
			HTTP:   "2",
			Client: c.RemoteAddr().String(),
			Server: server.RemoteAddr().String(),
			TLS:    p.tlsOf(server),
			Source: p.opts.Source,
		}),
		Rewrites: p.opts.Rewrite != nil,
		Admit:    p.beginRunning, Release: p.endRunning,
		Logger: p.log.With("addr", t.addr),
	})
	if !p.addRelay(r) {
		_ = conn.Close()
		_ = server.Close()
		return
	}
	defer p.removeRelay(r)
	r.Run(p.ctx, buf)
}

// beginH2 returns the function that starts the exchange of a request to a server (see h2.Config.Begin). connection
// has the fields that all exchanges of the connection share.
func (p *Proxy) beginH2(c *clientConn, o *origin, t target, connection captures.Exchange) func(method, authority, path string, header captures.Headers) (captures.Recording, rewrite.Exchange) {
	return func(method, authority, path string, header captures.Headers) (rec captures.Recording, change rewrite.Exchange) {
		o.gotRequest.Store(true)
		host := authority
		if host == "" {
			host = t.addr
		}
		shown, escapedPath := shownURL(t.scheme, host, path)
		// All exchanges of the connection share these fields.
		ex := connection
		ex.Method, ex.URL, ex.RequestHeaders, ex.Started = method, shown, header, time.Now()
		if p.opts.Rewrite != nil {
			change = p.opts.Rewrite.Begin(&connection, rewrite.RequestOf(&ex))
		}
		if !p.hosts.RecordsRequest(escapedPath, withPort(host, portFor(&url.URL{Scheme: t.scheme})), t.addr) {
			return nil, change
		}
		rec, err := c.recorder.Begin(ex)
		if err != nil {
			p.log.Error("forwarded without recording", "host", host, "err", err)
			return nil, change
		}
		return rec, change
	}
}

// shownURL returns the URL to be recorded for a request, and its escaped path, even if the path is invalid.
func shownURL(scheme, host, path string) (shown, escapedPath string) {
	u, err := url.ParseRequestURI(path)
	if err != nil || !strings.HasPrefix(path, "/") {
		escapedPath, _, _ = strings.Cut(path, "?")
		if path != "" && !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		return scheme + "://" + host + path, escapedPath
	}
	u.Scheme, u.Host = scheme, host
	return u.String(), u.EscapedPath()
}

// A relay forwards the traffic of one client connection. Drain makes it close the connection after the running
// exchanges.
type relay interface{ Drain() }

// addRelay registers a relay, so that Shutdown drains it. It returns false during shutdown.
func (p *Proxy) addRelay(r relay) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.relays[r] = struct{}{}
	p.relayGroup.Add(1)
	return true
}

// removeRelay unregisters a relay that has ended.
func (p *Proxy) removeRelay(r relay) {
	p.mu.Lock()
	delete(p.relays, r)
	p.mu.Unlock()
	p.relayGroup.Done()
}
