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

// Serve serves a listener until Shutdown, and then returns nil. Its clients may
// speak HTTP, as to a proxy or to Options.Reverse, or SOCKS 5.
//
// Source: mitm/README.md#socks
func (p *Proxy) Serve(ln net.Listener) error {
	return p.serve(ln, p.opts.Reverse, p.opts.ControlToken != "")
}

// ServeReverse is Serve for a server in front of one more origin. It has no
// control endpoints.
func (p *Proxy) ServeReverse(ln net.Listener, origin *url.URL) error {
	if err := checkOrigin(origin); err != nil {
		_ = ln.Close()
		return err
	}
	return p.serve(ln, origin, false)
}

func checkOrigin(u *url.URL) error {
	if u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("mitm: origin %q: want http://host or https://host", u)
	}
	return nil
}

func (p *Proxy) serve(ln net.Listener, origin *url.URL, control bool) error {
	if !p.addListener(ln) {
		return ln.Close() // shut down before it began
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
	go e.run(p)
	if err := p.frontServer.Serve(e); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("mitm: %w", err)
	}
	return nil
}

// A sniffingListener is a listener whose connections are looked at before the HTTP
// server accepts them.
type sniffingListener struct {
	net.Listener

	// origin is the server that clients take the proxy for; nil: none.
	origin *url.URL

	// allowsControl says that the listener has the control endpoints.
	allowsControl bool

	queue  *connQueue
	failed chan error
}

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

func (e *sniffingListener) Close() error {
	return errors.Join(e.Listener.Close(), e.queue.Close())
}

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

// isTemporary reports whether a listener may accept again after an error.
func isTemporary(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ECONNRESET},
		func(e error) bool { return errors.Is(err, e) })
}

// ServeTransparent serves connections that were on their way to elsewhere: each
// one's local address is where it was meant to go. It returns when the listener
// is closed, by Shutdown if by nobody else.
//
// A connection to ::1 goes to 127.0.0.1 if nobody listens at ::1: it was
// accepted before that was known, so that the client, which may mean
// localhost, cannot try the other address by itself.
//
// The clients are among the sockets; nil: those of this program's own network.
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
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // out of files, most likely
			continue
		}
		c := p.wrapClient(conn, sockets, nil)
		go func() {
			to, ok := c.LocalAddr().(*net.TCPAddr)
			if !ok {
				_ = c.Close()
				return
			}
			p.serveTo(c, p.hostAddr(to))
		}()
	}
}

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
