// Package listen serves HTTP/1 and HTTP/2, with and without TLS, on one port.
//
//	s := listen.New(listen.Options{Handler: h, Leaf: authority.Leaf})
//	err := s.Serve(ln)
//
// The first byte of a connection tells TLS from HTTP. Each certificate is made for the name for which the client asks.
//
// Limits: a client must send its first byte, and the headers of each request, within 10 seconds.
package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// handshakeTime is the time limit for a client's first byte, and for the headers of a request.
const handshakeTime = 10 * time.Second

// recordHandshake is the first byte of a TLS connection: the record type of handshake messages.
const recordHandshake = 0x16

// Options are the options of a Server. Handler is required.
type Options struct {
	// Handler answers the requests.
	Handler http.Handler

	// Leaf returns the certificate for a host name or an address. Without it, the server has no TLS.
	Leaf func(host string) (*tls.Certificate, error)

	// Logger gets the errors of net/http about broken connections; nil discards them.
	Logger *slog.Logger
}

// A Server answers requests with and without TLS. Its methods may be called concurrently.
type Server struct {
	// leaf returns certificates; it may be nil.
	leaf func(host string) (*tls.Certificate, error)

	// http are the servers without and with TLS.
	http [2]*http.Server
}

// New returns a Server, which does not listen yet.
func New(o Options) *Server {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{leaf: o.Leaf}
	for i := range s.http {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
		s.http[i] = &http.Server{
			Handler: o.Handler, Protocols: protocols, ReadHeaderTimeout: handshakeTime,
			ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		}
	}
	s.http[1].TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	return s
}

// certificate returns a certificate for the name that a client asks for.
func (s *Server) certificate(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.leaf == nil {
		return nil, errors.New("the server does not use TLS")
	}
	name := h.ServerName
	if name == "" {
		name, _, _ = net.SplitHostPort(h.Conn.LocalAddr().String())
	}
	return s.leaf(name)
}

// Serve answers requests that arrive at ln, with and without TLS, until Shutdown. It returns nil only after that.
func (s *Server) Serve(ln net.Listener) error {
	clear, secure := newQueue(ln), newQueue(ln)
	failed := make(chan error, 3)
	go func() { failed <- s.http[0].Serve(clear) }()
	go func() { failed <- s.http[1].ServeTLS(secure, "", "") }()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				failed <- err
				return
			}
			go dispatch(conn, clear, secure)
		}
	}()
	err := <-failed
	_ = ln.Close()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Shutdown waits for the requests in progress until ctx ends, then cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	var all error
	for _, h := range s.http {
		if err := h.Shutdown(ctx); err != nil {
			all = errors.Join(all, err, h.Close())
		}
	}
	return all
}

// dispatch passes a new connection to the HTTP server with or without TLS, depending on its first byte.
func dispatch(conn net.Conn, clear, secure *queue) {
	c := &peeked{Conn: conn, r: bufio.NewReader(conn)}
	// A connection that has ended meanwhile fails when it is read.
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTime))
	first, err := c.r.Peek(1)
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil {
		_ = conn.Close()
		return
	}
	if first[0] == recordHandshake {
		secure.push(c)
		return
	}
	clear.push(c)
}

// A peeked is a connection whose first bytes were read ahead; Read returns them again.
type peeked struct {
	// Conn is the connection.
	net.Conn
	// r reads from Conn; it has the bytes that were read ahead.
	r *bufio.Reader
}

// Read reads what was read ahead first.
func (c *peeked) Read(p []byte) (int, error) { return c.r.Read(p) }

// A queue is a net.Listener that returns connections which were accepted elsewhere and passed to push.
type queue struct {
	// ln is the listener that accepts the connections.
	ln net.Listener
	// conns passes connections from push to Accept.
	conns chan net.Conn
	// closed is closed when the queue is closed.
	closed chan struct{}
	// once closes the channel closed only once.
	once sync.Once
}

// newQueue returns a queue for connections that ln accepts.
func newQueue(ln net.Listener) *queue {
	return &queue{ln: ln, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// push passes a connection to Accept, or closes it if the queue is closed.
func (q *queue) push(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail, and closes the underlying listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	_ = q.ln.Close() // the other queue may have closed it
	return nil
}

// Addr returns the address of the listener.
func (q *queue) Addr() net.Addr { return q.ln.Addr() }

// IsLocalName reports whether a Host header, or the host of an Origin, names this machine's loopback interface. Servers
// that refuse other names are safe from web pages whose host name resolves to loopback (DNS rebinding).
func IsLocalName(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
