package mitm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"unwire/captures"
	"unwire/mitm/h2"
	"unwire/mitm/hosts"
	"unwire/mitm/raw"
	"unwire/mitm/refusal"
)

const (

	// alertNoApplicationProtocol is the TLS alert for a failed ALPN negotiation.
	alertNoApplicationProtocol tls.AlertError = 120 // RFC 7301, section 3.2
	// noProtocol is an ALPN protocol that no client offers, so the handshake fails.
	noProtocol = "unwire.none"
)

// intercept serves the contents of a client's tunnel to addr (host:port): HTTP, with or without TLS, or
// anything else, which is relayed and recorded as bytes.
func (p *Proxy) intercept(c *clientConn, addr string) {
	t := httpsTarget(addr, c.via)
	connect := func() (net.Conn, error) { return p.dialer.dial(p.ctx, t) }
	kind, server, err := p.sniff(c.Conn, connect)

	// From here on, the destination is known.
	c.target = target{scheme: "http", addr: addr, via: c.via}
	if kind != raw.Other && server != nil {
		p.parkConnection(t, server)
	}
	switch {
	case err != nil:
		p.endUnreached(c, captures.RawTCP, err)
	case kind == raw.TLS:
		p.interceptTLS(c, addr)
	case kind == raw.Other:
		p.serveRaw(c, c, server, captures.RawTCP, connect)
	case !p.hosts.RecordsHost(addr):
		p.forwardUnread(c, addr)
	case bytes.HasPrefix(c.Peeked(), []byte(raw.PrefaceH2)):
		p.interceptH2(c, &h2.Conn{Conn: c}, nil, c.target, nil)
	default:
		p.interceptH1(c, c, c.target)
	}
}

// forwardUnread tunnels a connection without decrypting or recording it.
func (p *Proxy) forwardUnread(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, httpsTarget(addr, c.via))
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		raw.Reset(c)
		return
	}
	p.log.Info("passed on unread", "addr", addr)
	tunnelConns(c, server)
}

// interceptTLS serves a tunnel to addr in which the client has started TLS.
func (p *Proxy) interceptTLS(c *clientConn, addr string) {
	h, err := c.ReadHello(p.ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "addr", addr, "err", err)
		t := httpsTarget(addr, c.via)
		p.serveRaw(c, c, nil, captures.RawTCP, func() (net.Conn, error) { return p.dialer.dial(p.ctx, t) })
		return
	}
	c.target = target{scheme: "https", addr: addr, sni: h.ServerName, via: c.via}
	if !p.hosts.RecordsHost(addr, c.target.hostPort()) {
		p.forwardUnread(c, addr)
		return
	}
	p.serveTLS(c, h, c.target.host())
}

// interceptReverse serves a client that connects to a reverse proxy with TLS.
func (p *Proxy) interceptReverse(c *clientConn) {
	h, err := c.ReadHello(p.ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "origin", c.origin.Host, "err", err)
		_ = c.Close()
		return
	}
	c.target = targetOf(c.origin)
	p.serveTLS(c, h, cmp.Or(h.ServerName, hosts.Name(c.LocalAddr().String())))
}

// serveTLS terminates the client's TLS with a certificate for a name, and serves the contents for the server
// c.target. h is the client's ClientHello.
func (p *Proxy) serveTLS(c *clientConn, h raw.Hello, name string) {
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	conn, err := p.handshakeRecorded(ctx, c, h, name)
	cancel()
	if err != nil {
		p.log.Warn("client refused the connection", "addr", c.target.addr, "sni", h.ServerName, "err", err)
		_ = c.Close()
		return
	}
	if conn.ConnectionState().NegotiatedProtocol == protoOldH1 {
		c.target.alpn = protoOldH1
	}
	// It looks for requests to c.target, which must be complete.
	p.watchForRefusal(c)
	switch {
	case c.origin == nil:
		p.serveDecrypted(c, conn, h.ALPN)
	case conn.ConnectionState().NegotiatedProtocol == protoH2:
		p.interceptH2(c, conn, nil, c.target, c.origin)
	default:
		p.interceptH1(c, conn, c.target)
	}
}

// serveDecrypted serves the contents of the client's terminated TLS connection. offer are the ALPN protocols of
// the client, which are offered to the server too.
func (p *Proxy) serveDecrypted(c *clientConn, conn *tls.Conn, offer []string) {
	pick := conn.ConnectionState().NegotiatedProtocol
	o := p.origins.get(c.target)
	client := raw.NewConn(conn, nil)
	connect := func() (net.Conn, error) { return o.dialAs(p.ctx, offer, pick) }

	kind := raw.Other
	var server *raw.Conn
	var err error
	if pick == "" || isHTTP(pick) {
		kind, server, err = p.sniff(client, connect)
	}

	// The preface must match the negotiated protocol.
	isH2 := bytes.HasPrefix(client.Peeked(), []byte(raw.PrefaceH2))
	if kind == raw.HTTP && isH2 != (pick == protoH2) {
		kind = raw.Other
	}
	if kind == raw.HTTP && server != nil {
		o.keepSniffed(server)
	}
	switch {
	case err != nil:
		p.endUnreached(c, captures.RawTLS, err)
	case kind == raw.HTTP && isH2:
		p.interceptH2(c, conn, client.Peeked(), c.target, nil)
	case kind == raw.HTTP:
		p.interceptH1(c, client, c.target)
	default:
		o.gotRequest.Store(true)
		p.serveRaw(c, client, server, captures.RawTLS, connect)
	}
}

// isHTTP reports whether an ALPN protocol is a version of HTTP.
func isHTTP(proto string) bool { return proto == protoH2 || proto == protoH1 || proto == protoOldH1 }

// handshakeRecorded performs the TLS handshake with a client (see terminateTLS), and records a failure.
func (p *Proxy) handshakeRecorded(ctx context.Context, c *clientConn, h raw.Hello, name string) (*tls.Conn, error) {
	if !p.beginRunning() {
		// The proxy is shutting down, so a failure is not a refusal.
		return p.terminateTLS(ctx, c, h, name)
	}
	// Shutdown waits until the refusal is recorded.
	defer p.endRunning()

	conn, err := p.terminateTLS(ctx, c, h, name)
	if err != nil {
		p.recordFailedHandshake(c, err)
		return conn, err
	}
	host := c.target.hostPort()
	p.refusals.ExpectAccepted(host)
	c.recorder.Then(func(by captures.Process) { p.refusals.NoteAccepted(refusal.Refusal{Process: by, Host: host}) })
	return conn, nil
}

// terminateTLS performs the server's side of the TLS handshake with a client, with a certificate for a name.
// From the protocols that the client offers (ALPN), it selects the one that the server selects. For a reverse
// proxy, only HTTP is offered.
func (p *Proxy) terminateTLS(ctx context.Context, c *clientConn, h raw.Hello, name string) (*tls.Conn, error) {
	leaf, err := p.opts.CA.Leaf(name)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{*leaf},
		MinVersion:   tls.VersionTLS12,
		// Tickets would be useless: each connection has its own configuration.
		SessionTicketsDisabled: true,
		KeyLogWriter:           p.opts.KeyLog,

		DynamicRecordSizingDisabled: true,
	}

	// Select the protocol that the server would select.
	offer := h.ALPN
	if c.origin != nil {
		offer = slices.DeleteFunc(slices.Clone(offer), func(p string) bool { return !isHTTP(p) })
	}
	if len(offer) == 0 && len(h.ALPN) > 0 {
		cfg.NextProtos = []string{noProtocol}
	} else if len(offer) > 0 {
		pick, err := p.origins.get(c.target).negotiate(ctx, offer)
		var remote *net.OpError
		switch {
		case errors.As(err, &remote) && remote.Err != nil && remote.Err.Error() == alertNoApplicationProtocol.Error():
			// Fail in the same way as the server.
			pick = noProtocol
		case err != nil:
			// Accept the handshake, so that a response can contain the reason.
			pick = offer[0]
		}
		if pick != "" {
			cfg.NextProtos = []string{pick}
		}
	}

	// Watch for a cleartext alert during the handshake.
	watched := &refusal.Handshake{Conn: c}
	below := &h2.Conn{Conn: watched}
	conn := tls.Server(below, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, watched.Explain(err)
	}
	below.Conn = c
	return conn, nil
}

// serveAddress serves a client's connection whose destination is addr.
func (p *Proxy) serveAddress(c *clientConn, addr string) {
	if !p.hosts.RecordsHost(addr) && p.hosts.IsDecidedByAddress(addr) {
		p.forwardUnread(c, addr)
		return
	}
	p.intercept(c, addr)
}
