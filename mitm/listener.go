package mitm

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"unwire/mitm/access"
	"unwire/mitm/chain"
	"unwire/mitm/h2"
	"unwire/mitm/process"
	"unwire/mitm/raw"
	"unwire/mitm/socks"
)

// Serve serves a listener until Shutdown, and then returns nil. Clients may use it as an HTTP proxy, as a SOCKS
// 5 proxy, or as if it were the server of Options.Reverse.
//
// Source: mitm/README.md#socks
func (p *Proxy) Serve(ln net.Listener) error {
	return p.serve(ln, p.opts.Reverse, p.opts.ControlToken != "")
}

// ServeReverse serves an additional listener as a reverse proxy for the server origin. It has no control
// endpoints.
func (p *Proxy) ServeReverse(ln net.Listener, origin *url.URL) error {
	if err := checkOrigin(origin); err != nil {
		_ = ln.Close()
		return err
	}
	return p.serve(ln, origin, false)
}

// checkOrigin returns an error if u cannot be the server of a reverse proxy.
func checkOrigin(u *url.URL) error {
	if u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("mitm: origin %q: want http://host or https://host", u)
	}
	return nil
}

// serve implements Serve and ServeReverse. control means that the listener has control endpoints.
func (p *Proxy) serve(ln net.Listener, origin *url.URL, control bool) error {
	if !p.addListener(ln) {
		// Shutdown was called before.
		return ln.Close()
	}
	e := &sniffingListener{Listener: ln, origin: origin, allowsControl: control, queue: newConnQueue(), failed: make(chan error, 1)}
	if origin != nil {
		link, err := chain.Announce(ln.Addr(), targetOf(origin).addr)
		if err != nil {
			p.log.Warn("a ring of reverse proxies will not be noticed", "err", err)
		} else {
			defer link.Close()
		}
	}

	// Connections that are HTTP/1 reach frontServer through the queue.
	go e.run(p)
	if err := p.frontServer.Serve(e); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("mitm: %w", err)
	}
	return nil
}

// A sniffingListener is a net.Listener that reads the first bytes of each connection, and returns only HTTP
// connections from Accept; it serves the others itself.
type sniffingListener struct {
	// Listener is the listener of the operating system.
	net.Listener

	// origin is the URL of the server to which a reverse proxy's listener forwards; nil for an ordinary
	// proxy.
	origin *url.URL

	// allowsControl means that the listener serves the proxy's control endpoints.
	allowsControl bool

	// queue contains the connections that Accept returns.
	queue *connQueue
	// failed receives the error with which run ended.
	failed chan error
}

// Accept returns the next HTTP connection.
func (e *sniffingListener) Accept() (net.Conn, error) {
	conn, err := e.queue.Accept()
	if err != nil {
		select {
		case err = <-e.failed:
		default:
		}
	}
	return conn, err
}

// Close closes the listener and the queue.
func (e *sniffingListener) Close() error {
	return errors.Join(e.Listener.Close(), e.queue.Close())
}

// run accepts connections, detects the protocol of each by its first bytes (SOCKS, TLS, HTTP/2 or HTTP/1), and
// passes it to the handler for that.
func (e *sniffingListener) run(p *Proxy) {
	defer e.queue.Close()
	for {
		conn, err := e.Listener.Accept()
		if err != nil {
			if isTemporary(err) {
				time.Sleep(acceptPause)
				continue
			}
			e.failed <- err
			return
		}
		c := p.wrapClient(conn, nil, nil)
		c.origin, c.allowsControl = e.origin, e.allowsControl
		// Sniffing waits for the client's first bytes, so each connection has its own goroutine.
		go func() {
			denied := p.guard.Deny(conn)
			_ = c.SetReadDeadline(time.Now().Add(readHeaderTimeout))
			if err := c.ReadMore(raw.MaxRequestLine); err != nil {
				_ = c.Close()
				return
			}
			if denied != "" {
				access.Refuse(c, c.Peeked(), denied)
				return
			}
			prefaced := e.origin != nil && c.HasHTTP2Preface()
			_ = c.SetReadDeadline(time.Time{})

			// The first bytes distinguish SOCKS, TLS, HTTP/2 with prior knowledge, and HTTP/1.1.
			if c.Peeked()[0] == socks.Version {
				p.serveSOCKS(c)
				return
			}
			if e.origin != nil && c.Peeked()[0] == raw.RecordTypeTLS {
				p.interceptReverse(c)
				return
			}
			if prefaced {
				p.interceptH2(c, &h2.Conn{Conn: c}, nil, targetOf(e.origin), e.origin)
				return
			}
			e.queue.push(p.newFront(c))
		}()
	}
}

// isTemporary reports whether Accept may succeed again after this error.
func isTemporary(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ECONNRESET},
		func(e error) bool { return errors.Is(err, e) })
}

// ServeTransparent serves connections that were redirected by the operating system: the local address of each is
// its original destination. It returns when the listener is closed, at the latest by Shutdown.
//
// A connection to ::1 is forwarded to 127.0.0.1 if nothing listens on ::1. It was accepted before that is
// known, so the client, which may have resolved localhost, cannot try the other address itself.
//
// Client programs are looked up in sockets; nil means the network namespace of this process.
func (p *Proxy) ServeTransparent(ln net.Listener, sockets *process.Sockets) {
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		_ = ln.Close()
		return
	}
	p.startTunnelServer()
	p.transparentListeners = append(p.transparentListeners, ln)
	p.mu.Unlock()

	// The listener is closed by Shutdown.
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Probably no file descriptor is free.
			time.Sleep(acceptPause)
			continue
		}
		c := p.wrapClient(conn, sockets, nil)
		go func() {
			to, ok := c.LocalAddr().(*net.TCPAddr)
			if !ok {
				_ = c.Close()
				return
			}
			p.serveAddress(c, p.hostAddr(to))
		}()
	}
}

// hostAddr returns the address to connect to for the original destination of a redirected connection.
func (p *Proxy) hostAddr(to *net.TCPAddr) string {
	if to.IP.Equal(net.IPv6loopback) {
		conn, err := net.DialTimeout("tcp", to.String(), dialTimeout)
		if err != nil {
			return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to.Port}).String()
		}
		_ = conn.Close()
	}
	return to.String()
}
