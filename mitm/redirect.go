package mitm

import (
	"net"

	"unwire/mitm/raw"
)

// redirectAddr returns the address of the listener to which the Node hook redirects connections. It opens the
// listener if necessary.
func (p *Proxy) redirectAddr() (string, error) {
	p.redirects.Lock()
	defer p.redirects.Unlock()
	if p.redirects.closed {
		return "", net.ErrClosed
	}
	if p.redirects.listener == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		if !p.addListener(ln) {
			_ = ln.Close()
			return "", net.ErrClosed
		}
		p.redirects.listener = ln
		go p.serveRedirected(ln)
	}
	return p.redirects.listener.Addr().String(), nil
}

// closeRedirects closes the listener for redirected connections and removes all routes.
func (p *Proxy) closeRedirects() {
	p.redirects.Lock()
	defer p.redirects.Unlock()
	if p.redirects.closed = true; p.redirects.listener != nil {
		_ = p.redirects.listener.Close()
	}
	p.routes.Close()
}

// serveRedirected accepts redirected connections until the listener is closed.
func (p *Proxy) serveRedirected(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			// Shutdown has closed the listener.
			return
		}
		p.acceptRedirected(conn)
	}
}

// acceptRedirected serves a redirected connection as soon as its route, i.e. destination, is known. Routes are
// identified by the client's port on 127.0.0.1, from which hooks connect. Connections from other loopback
// addresses are refused, because they can have the same ports.
func (p *Proxy) acceptRedirected(conn net.Conn) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	to, _ := conn.LocalAddr().(*net.TCPAddr)
	if !ok || to == nil || !from.IP.Equal(to.IP) {
		p.log.Warn("a redirected connection is refused", "from", conn.RemoteAddr())
		raw.Reset(conn)
		return
	}
	s, err := p.routes.Connect(from.Port)
	if err != nil {
		p.log.Warn("a redirected connection is refused", "from", from, "err", err)
		raw.Reset(conn)
		return
	}
	c := p.wrapClient(conn, nil, func() { p.routes.Remove(from.Port, s) })
	go func() {
		to := p.routes.Await(s)
		if to == "" {
			p.log.Warn("a redirected connection has no route", "from", from)
			raw.Reset(c)
			return
		}
		p.serveAddress(c, to)
	}()
}
