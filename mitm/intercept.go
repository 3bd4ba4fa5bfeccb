package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"unwire/mitm/h2"
)

// silence is how long a client may say nothing before the server is asked
// whether it speaks first.
const silence = 400 * time.Millisecond

const (
	alertNoApplicationProtocol tls.AlertError = 120 // RFC 7301, section 3.2
	noProtocol                                = "unwire.none"
)

// intercept serves what a client sends through a tunnel to addr: HTTP in TLS or
// in clear is recorded, anything else is passed on as it is.
func (p *Proxy) intercept(c *clientConn, addr string) {
	kind, err := c.sniffing(silence)
	if err == nil && kind == undecided {
		kind, err = p.whoSpeaks(c, addr)
	}
	if err != nil {
		_ = c.Close()
		return
	}
	switch kind {
	case protocolTLS:
		p.interceptTLS(c, addr)
	case protocolHTTP:
		if !p.hosts.captured(addr) {
			p.pass(c, addr)
			return
		}
		c.target = target{scheme: "http", addr: addr}
		if bytes.HasPrefix(c.head, []byte(prefaceH2)) {
			p.interceptH2(c, &h2.Conn{Conn: c}, c.target, nil)
			return
		}
		p.conns.push(c)
	case protocolOther:
		p.pass(c, addr)
	case undecided: // whoSpeaks has served it
	}
}

// whoSpeaks settles it for a client that says nothing: it connects to the
// server, and if that speaks first, passes everything on. Otherwise the
// client's words decide after all.
func (p *Proxy) whoSpeaks(c *clientConn, addr string) (protocol, error) {
	for len(c.head) == 0 {
		server, err := p.dialer.dial(p.ctx, "tcp", addr)
		if err != nil {
			c.reset()
			return undecided, err
		}
		fromServer, first, err := firstWords(c, server)
		if err != nil {
			_ = server.Close()
			return undecided, err
		}
		if fromServer {
			if _, err := c.Write(first); err == nil {
				p.log.Info("passed on unread: the server speaks first", "addr", addr)
				join(c, server)
			}
			_ = server.Close()
			_ = c.Close()
			return undecided, nil
		}
		_ = server.Close()
	}
	kind, err := c.sniffing(handshakeTimeout)
	if err == nil && kind == undecided {
		kind = protocolOther
	}
	return kind, err
}

// pass tunnels a connection as it is.
func (p *Proxy) pass(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, "tcp", addr)
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		c.reset()
		return
	}
	p.log.Info("passed on unread", "addr", addr)
	join(c, server)
}

func (p *Proxy) interceptTLS(c *clientConn, addr string) {
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	h, err := c.readHello(ctx)
	if err != nil {
		p.log.Warn("no TLS after all", "addr", addr, "err", err)
		p.pass(c, addr)
		return
	}
	c.target = target{scheme: "https", addr: addr, sni: h.sni}
	if name := withPort(c.target.host(), portOf(addr)); !p.hosts.captured(addr, name) || !h.speaksHTTP() {
		p.pass(c, addr)
		return
	}
	conn, err := p.handshake(ctx, c, h)
	if err != nil {
		p.log.Warn("client refused the connection", "addr", addr, "sni", h.sni, "err", err)
		_ = c.Close()
		return
	}
	p.watchSilence(c)
	if conn.ConnectionState().NegotiatedProtocol == protoH2 {
		p.interceptH2(c, conn, c.target, nil)
		return
	}
	p.conns.push(conn)
}

// handshake is terminate with the client's refusal on record.
func (p *Proxy) handshake(ctx context.Context, c *clientConn, h hello) (*tls.Conn, error) {
	if !p.enter() {
		return p.terminate(ctx, c, h) // it is the proxy that hangs up
	}
	defer p.leave() // so that a refusal that is on its way is awaited
	conn, err := p.terminate(ctx, c, h)
	if err != nil {
		p.recordRefusal(c, refusal(err, p.opts.CA.CertFile()))
	}
	return conn, err
}

// terminate ends the client's TLS here, with a certificate for the name that it
// asked for and the protocol that the server picks from its offer.
func (p *Proxy) terminate(ctx context.Context, c *clientConn, h hello) (*tls.Conn, error) {
	leaf, err := p.opts.CA.Leaf(c.target.host())
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		Certificates:           []tls.Certificate{*leaf},
		MinVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true, // each connection has a configuration of its own
		KeyLogWriter:           p.opts.KeyLog,

		DynamicRecordSizingDisabled: true,
	}
	if offer := h.offer(); len(offer) > 0 {
		pick, err := p.origins.get(c.target).ask(ctx, offer)
		var remote *net.OpError
		switch {
		case errors.As(err, &remote) && remote.Err != nil && remote.Err.Error() == alertNoApplicationProtocol.Error():
			pick = noProtocol // refused as the server refuses it
		case err != nil:
			pick = offer[0] // accepted, so that the reason can be told in an answer
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
