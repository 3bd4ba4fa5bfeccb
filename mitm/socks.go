package mitm

import (
	"errors"
	"net"
	"syscall"
	"time"

	"unwire/mitm/socks"
	"unwire/mitm/upstream"
)

// socksTimeout limits the SOCKS handshake with a client.
const socksTimeout = handshakeTimeout

// serveSOCKS serves a client's connection that begins with a SOCKS greeting.
func (p *Proxy) serveSOCKS(c *clientConn) {
	_ = c.SetDeadline(time.Now().Add(socksTimeout))
	addr, via, err := socks.Greet(c)
	if c.via = via; err == nil {
		err = p.admitSOCKS(httpsTarget(addr, via))
	}
	if err != nil {
		p.log.Warn("SOCKS request not served", "err", err)
		var refused *socks.Error
		if errors.As(err, &refused) {
			_, _ = c.Write(socks.Reply(refused.Reply))
		}
		_ = c.Close()
		return
	}
	if !p.hosts.RecordsHost(addr) && p.hosts.IsDecidedByAddress(addr) {
		p.forwardSOCKS(c, addr)
		return
	}
	// As for CONNECT, errors of the server are reported in HTTP responses.
	if _, err := c.Write(socks.Reply(socks.Succeeded)); err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	p.intercept(c, addr)
}

// admitSOCKS returns an error for a connection that is in a loop of proxies. If the client is another unwire,
// it also returns an error if the server cannot be connected to.
func (p *Proxy) admitSOCKS(t target) error {
	if p.dialer.hasPassed(t.via) {
		return &socks.Error{Reply: socks.NotAllowed, Text: "the connection passed through this proxy before"}
	}
	if err := p.connectBeforeAnswer(p.ctx, t); err != nil {
		return &socks.Error{Reply: socksReplyFor(err), Text: err.Error()}
	}
	return nil
}

// forwardSOCKS connects to the server addr and tunnels the client's connection without recording it.
func (p *Proxy) forwardSOCKS(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, httpsTarget(addr, c.via))
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		_ = c.SetDeadline(time.Now().Add(socksTimeout))
		_, _ = c.Write(socks.Reply(socksReplyFor(err)))
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := c.Write(socks.Reply(socks.Succeeded)); err != nil {
		_ = server.Close()
		_ = c.Close()
		return
	}
	tunnelConns(c, server)
}

// socksReplyFor returns the SOCKS reply code for an error.
func socksReplyFor(err error) byte {
	var dns *net.DNSError
	switch {
	case errors.Is(err, errOwnAddress), errors.Is(err, upstream.ErrLoop):
		return socks.NotAllowed
	case errors.As(err, new(*upstream.Error)):
		return socks.Failure
	case errors.Is(err, syscall.ECONNREFUSED):
		return socks.ConnectionRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socks.NetworkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH), errors.As(err, &dns):
		return socks.HostUnreachable
	}
	return socks.Failure
}
