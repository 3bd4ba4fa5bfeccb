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
	alertNoApplicationProtocol tls.AlertError = 120 // RFC 7301, section 3.2
	noProtocol                                = "unwire.none"
)

// intercept serves what a client sends through a tunnel to addr: HTTP in TLS or in clear,
// or anything else, which is passed on and recorded as it is.
func (p *Proxy) intercept(c *clientConn, addr string) {
	t := unread(addr, c.via)
	connect := func() (net.Conn, error) { return p.dialer.dial(p.ctx, t) }
	kind, server, err := p.sniff(c.Conn, connect)
	c.target = target{scheme: "http", addr: addr, via: c.via}
	if kind != raw.Other && server != nil {
		p.keepSpare(t, server)
	}
	switch {
	case err != nil:
		p.endUnserved(c, captures.RawTCP, err)
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

// forwardUnread tunnels a connection as it is, unrecorded.
func (p *Proxy) forwardUnread(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, unread(addr, c.via))
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		raw.Reset(c)
		return
	}
	p.log.Info("passed on unread", "addr", addr)
	tunnelConns(c, server)
}

func (p *Proxy) interceptTLS(c *clientConn, addr string) {
	h, err := c.ReadHello(p.ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "addr", addr, "err", err)
		t := unread(addr, c.via)
		p.serveRaw(c, c, nil, captures.RawTCP, func() (net.Conn, error) { return p.dialer.dial(p.ctx, t) })
		return
	}
	c.target = target{scheme: "https", addr: addr, sni: h.ServerName, via: c.via}
	if !p.hosts.RecordsHost(addr, c.target.shown()) {
		p.forwardUnread(c, addr)
		return
	}
	p.serveTLS(c, h, c.target.host())
}

// interceptReverse serves a client that speaks TLS to a listener in front of an origin.
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

// serveTLS ends the TLS of a client that takes the proxy for the server of a name, and
// serves what it sends to c.target.
func (p *Proxy) serveTLS(c *clientConn, h raw.Hello, name string) {
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	conn, err := p.handshakeRecorded(ctx, c, h, name)
	cancel()
	if err != nil {
		p.log.Warn("client refused the connection", "addr", c.target.addr, "sni", h.ServerName, "err", err)
		_ = c.Close()
		return
	}
	p.watchForRefusal(c)
	if conn.ConnectionState().NegotiatedProtocol == protoOldH1 {
		c.target.alpn = protoOldH1
	}
	switch {
	case c.origin == nil:
		p.serveDecrypted(c, conn, h.ALPN)
	case conn.ConnectionState().NegotiatedProtocol == protoH2:
		p.interceptH2(c, conn, nil, c.target, c.origin)
	default:
		p.interceptH1(c, conn, c.target)
	}
}

// serveDecrypted serves what a client sends in TLS that ends here. Its offer is the
// server's to choose from, as the client's was.
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
	isH2 := bytes.HasPrefix(client.Peeked(), []byte(raw.PrefaceH2))
	if kind == raw.HTTP && isH2 != (pick == protoH2) {
		kind = raw.Other
	}
	if kind == raw.HTTP && server != nil {
		o.keepSniffed(server)
	}
	switch {
	case err != nil:
		p.endUnserved(c, captures.RawTLS, err)
	case kind == raw.HTTP && isH2:
		p.interceptH2(c, conn, client.Peeked(), c.target, nil)
	case kind == raw.HTTP:
		p.interceptH1(c, client, c.target)
	default:
		o.gotRequest.Store(true)
		p.serveRaw(c, client, server, captures.RawTLS, connect)
	}
}

// isHTTP reports whether a protocol that was negotiated is HTTP.
func isHTTP(proto string) bool { return proto == protoH2 || proto == protoH1 || proto == protoOldH1 }

// handshakeRecorded is terminateTLS, and records that the client refused.
func (p *Proxy) handshakeRecorded(ctx context.Context, c *clientConn, h raw.Hello, name string) (*tls.Conn, error) {
	if !p.admitExchange() {
		// It is the proxy that hangs up.
		return p.terminateTLS(ctx, c, h, name)
	}
	// Shutdown waits for a refusal that is on its way.
	defer p.releaseExchange()

	conn, err := p.terminateTLS(ctx, c, h, name)
	if err != nil {
		text, refused := refusal.Describe(err, p.opts.CA.CertFile)
		p.recordRefusal(c, text, refused)
	}
	return conn, err
}

// terminateTLS ends the client's TLS here, with a certificate for a name and the protocol
// that the server picks from the client's offer, whatever that is. In front of an origin
// there is only HTTP.
func (p *Proxy) terminateTLS(ctx context.Context, c *clientConn, h raw.Hello, name string) (*tls.Conn, error) {
	leaf, err := p.opts.CA.Leaf(name)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		Certificates:           []tls.Certificate{*leaf},
		MinVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true, // per connection, like this configuration
		KeyLogWriter:           p.opts.KeyLog,

		DynamicRecordSizingDisabled: true,
	}
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
			pick = noProtocol // refused as the server refuses it
		case err != nil:
			// Accepted, so that an answer can give the reason.
			pick = offer[0]
		}
		if pick != "" {
			cfg.NextProtos = []string{pick}
		}
	}
	watched := &refusal.Handshake{Conn: c}
	below := &h2.Conn{Conn: watched}
	conn := tls.Server(below, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, watched.Explain(err)
	}
	below.Conn = c
	return conn, nil
}

// serveTo serves a connection that is known to go to an address.
func (p *Proxy) serveTo(c *clientConn, addr string) {
	if !p.hosts.RecordsHost(addr) && p.hosts.IsDecidedByAddress(addr) {
		p.forwardUnread(c, addr)
		return
	}
	p.intercept(c, addr)
}
