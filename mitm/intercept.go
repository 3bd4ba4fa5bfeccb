package mitm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"unwire/mitm/h2"
	"unwire/mitm/hosts"
	"unwire/mitm/refusal"
)

// silentClientDelay is how long a client may send nothing before the server is
// checked for sending first.
const silentClientDelay = 400 * time.Millisecond

const (
	alertNoApplicationProtocol tls.AlertError = 120 // RFC 7301, section 3.2
	noProtocol                                = "unwire.none"
)

// intercept serves what a client sends through a tunnel to addr: HTTP in TLS or
// in clear is recorded, anything else is passed on as it is.
func (p *Proxy) intercept(c *clientConn, addr string) {
	kind, err := c.sniffProtocol(silentClientDelay)
	if err == nil && kind == undecided {
		kind, err = p.sniffSilentClient(c, addr)
	}
	if err != nil {
		_ = c.Close()
		return
	}
	switch kind {
	case protocolTLS:
		p.interceptTLS(c, addr)
	case protocolHTTP:
		if !p.hosts.RecordsHost(addr) {
			p.forwardUnread(c, addr)
			return
		}
		c.target = target{scheme: "http", addr: addr, via: c.via}
		if bytes.HasPrefix(c.peeked, []byte(prefaceH2)) {
			p.interceptH2(c, &h2.Conn{Conn: c}, c.target, nil)
			return
		}
		p.interceptH1(c, c, c.target)
	case protocolOther:
		p.forwardUnread(c, addr)
	case undecided: // sniffSilentClient has served it
	}
}

// sniffSilentClient decides for a client that sends nothing: it connects to the
// server, and if that sends first, forwards everything unread. Otherwise the client's
// first bytes decide after all.
func (p *Proxy) sniffSilentClient(c *clientConn, addr string) (protocol, error) {
	for len(c.peeked) == 0 {
		server, err := p.dialer.dial(p.ctx, unread(addr, c.via))
		if err != nil {
			c.reset()
			return undecided, err
		}
		fromServer, first, err := awaitFirstBytes(c, server)
		if err != nil {
			_ = server.Close()
			return undecided, err
		}
		if fromServer {
			if _, err := c.Write(first); err == nil {
				p.log.Info("passed on unread: the server speaks first", "addr", addr)
				tunnelConns(c, server)
			}
			_ = server.Close()
			_ = c.Close()
			return undecided, nil
		}
		_ = server.Close()
	}
	kind, err := c.sniffProtocol(handshakeTimeout)
	if err == nil && kind == undecided {
		kind = protocolOther
	}
	return kind, err
}

// forwardUnread tunnels a connection as it is, unrecorded.
func (p *Proxy) forwardUnread(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, unread(addr, c.via))
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		c.reset()
		return
	}
	p.log.Info("passed on unread", "addr", addr)
	tunnelConns(c, server)
}

func (p *Proxy) interceptTLS(c *clientConn, addr string) {
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	h, err := c.readHello(ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "addr", addr, "err", err)
		p.forwardUnread(c, addr)
		return
	}
	c.target = target{scheme: "https", addr: addr, sni: h.sni, via: c.via}
	if name := withPort(c.target.host(), portOf(addr)); !p.hosts.RecordsHost(addr, name) || !h.speaksHTTP() {
		p.forwardUnread(c, addr)
		return
	}
	p.serveTLS(ctx, c, h, c.target.host())
}

// interceptReverse serves a client that speaks TLS to a listener in front of an origin.
func (p *Proxy) interceptReverse(c *clientConn) {
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	h, err := c.readHello(ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "origin", c.origin.Host, "err", err)
		_ = c.Close()
		return
	}
	c.target = targetOf(c.origin)
	p.serveTLS(ctx, c, h, cmp.Or(h.sni, hosts.Name(c.LocalAddr().String())))
}

// serveTLS ends the TLS of a client that takes the proxy for the server of a name, and
// serves its requests to c.target.
func (p *Proxy) serveTLS(ctx context.Context, c *clientConn, h clientHello, name string) {
	conn, err := p.handshakeRecorded(ctx, c, h, name)
	if err != nil {
		p.log.Warn("client refused the connection", "addr", c.target.addr, "sni", h.sni, "err", err)
		_ = c.Close()
		return
	}
	p.watchForRefusal(c)
	if conn.ConnectionState().NegotiatedProtocol == protoH2 {
		p.interceptH2(c, conn, c.target, c.origin)
		return
	}
	p.interceptH1(c, conn, c.target)
}

// handshakeRecorded is terminateTLS, and records that the client refused.
func (p *Proxy) handshakeRecorded(ctx context.Context, c *clientConn, h clientHello, name string) (*tls.Conn, error) {
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
// that the server picks from the client's offer.
func (p *Proxy) terminateTLS(ctx context.Context, c *clientConn, h clientHello, name string) (*tls.Conn, error) {
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
	if !h.speaksHTTP() {
		cfg.NextProtos = []string{noProtocol}
	} else if offer := h.offer(); len(offer) > 0 {
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
	conn := tls.Server(&h2.Conn{Conn: c}, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
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
