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
)

// interceptH2 serves a client that speaks HTTP/2 on conn, which is a *h2.Conn on
// the client's or the TLS on that, and of which head was read already: frame by frame if the server does too, and
// otherwise by the HTTP server, which tells the client why not.
func (p *Proxy) interceptH2(c *clientConn, conn net.Conn, head []byte, t target, origin *url.URL) {
	buf, err := h2.ReadPreface(raw.NewConn(conn, head), readHeaderTimeout)
	if err != nil {
		_ = conn.Close()
		return
	}
	o := p.origins.get(t)
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	server, err := o.dialH2(ctx)
	if err != nil {
		o.gotRequest.Store(true)
		c.target, c.origin, c.unreachedErr = t, origin, err
		if errors.Is(err, errNoHTTP2) {
			c.unreachedErr = nil // by HTTP/1 it can be
		}
		p.tunnelled.push(raw.NewConn(conn, buf))
		return
	}

	r := h2.New(h2.Config{
		Client: conn, Server: server, Origin: origin,
		Begin: p.beginH2(c, o, captures.Exchange{
			HTTP:   "2",
			Client: c.RemoteAddr().String(),
			Server: server.RemoteAddr().String(),
			TLS:    p.tlsOf(server),
			Source: p.opts.Source,
		}),
		Admit: p.admitExchange, Release: p.releaseExchange,
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

// beginH2 returns the function that starts the recording of a request to an origin,
// if it is to be recorded and can be. All exchanges of a connection have the fields
// of connection in common.
func (p *Proxy) beginH2(c *clientConn, o *origin, connection captures.Exchange) func(method, authority, path string, header captures.Headers) captures.Recording {
	t := o.target
	return func(method, authority, path string, header captures.Headers) captures.Recording {
		o.gotRequest.Store(true)
		host := authority
		if host == "" {
			host = t.addr
		}
		shown, escapedPath := shownURL(t.scheme, host, path)
		if !p.hosts.RecordsRequest(escapedPath, withPort(host, portFor(&url.URL{Scheme: t.scheme})), t.addr) {
			return nil
		}
		ex := connection
		ex.Method, ex.URL, ex.RequestHeaders, ex.Started = method, shown, header, time.Now()
		rec, err := c.recorder.Begin(ex)
		if err != nil {
			p.log.Error("passes unrecorded", "host", host, "err", err)
			return nil
		}
		return rec
	}
}

// shownURL is the URL of a request, and its path with escapes, also where the
// client's path is none that a URL can have.
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

// A relay serves a client's connection, and can be told to end it.
type relay interface{ Drain() }

// addRelay notes a relay, which Shutdown ends.
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

func (p *Proxy) removeRelay(r relay) {
	p.mu.Lock()
	delete(p.relays, r)
	p.mu.Unlock()
	p.relayGroup.Done()
}
