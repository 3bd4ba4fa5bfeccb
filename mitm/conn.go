package mitm

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"unwire/mitm/process"
	"unwire/mitm/raw"
)

// chunkSize is the size of the buffer in which bodies are read and recorded, in bytes.
const chunkSize = 64 << 10

// A clientConn is a client's connection to the proxy. Bytes can be read ahead, and callbacks are called when it
// is closed.
type clientConn struct {
	// Conn is the underlying connection, whose first bytes can be read ahead.
	*raw.Conn

	// target is the server to which the connection's requests go, if that is known.
	target target

	// recorder records the connection's exchanges together with the client program.
	recorder *process.Recorder

	// via lists the ids of the unwire proxies that the connection has passed through; "" if none.
	via string

	// origin is the URL of the server to which a reverse proxy's listener forwards; nil if the client uses
	// unwire as an ordinary proxy.
	origin *url.URL

	// allowsControl means that the client may call the proxy's control endpoints on this connection (see
	// control.go).
	allowsControl bool

	// address caches the client's address as text.
	address string

	// unreachedErr is the reason why the server of an HTTP/2 client could not be connected to. All of the
	// connection's requests are answered with it.
	unreachedErr error

	// lastAnswer is when the last HTTP/1 response ended, in nanoseconds since 1970; 0 if there was none.
	lastAnswer atomic.Int64

	// onClose, if set, is called once, when the connection is closed.
	onClose func()
	// onUnusedClose, if set, is called after onClose. It checks whether the client has closed the connection without
	// using it, which may mean that it refused the certificate.
	onUnusedClose atomic.Pointer[func()]
	// closeOnce makes the callbacks run only once.
	closeOnce sync.Once
}

// remote returns the client's address. It must be called only by the goroutine that reads.
func (c *clientConn) remote() string {
	if c.address == "" {
		c.address = c.RemoteAddr().String()
	}
	return c.address
}

// A halfCloser is a connection of which each direction can be closed separately.
type halfCloser interface {
	CloseWrite() error
	CloseRead() error
}

// Close closes the connection and calls the callbacks.
func (c *clientConn) Close() error {
	c.closeOnce.Do(func() {
		if c.onClose != nil {
			c.onClose()
		}
		if f := c.onUnusedClose.Load(); f != nil {
			(*f)()
		}
	})
	return c.Conn.Close()
}

// A connQueue is a net.Listener that returns connections which were accepted elsewhere and passed to push.
type connQueue struct {
	// conns are the connections that Accept has not returned yet.
	conns chan net.Conn
	// closed is closed when the queue is closed.
	closed chan struct{}
	// once closes the channel closed only once.
	once sync.Once
}

// newConnQueue returns an empty queue.
func newConnQueue() *connQueue {
	return &connQueue{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// push passes a connection to the server that calls Accept, which from then on is responsible for closing it.
func (q *connQueue) push(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

// Accept returns the next connection that was pushed, or net.ErrClosed.
func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail.
func (q *connQueue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns the unspecified address, because the connections were accepted by other listeners.
func (q *connQueue) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

// tunnelConns copies bytes in both directions between two connections until both directions have ended. The end
// of one direction is forwarded as a half-close; an error on one side resets both.
func tunnelConns(a *clientConn, b net.Conn) {
	down := make(chan struct{})
	go func() {
		defer close(down)
		copyDirection(a, b)
	}()
	copyDirection(b, a)

	// Close only after both directions have ended.
	<-down
	_ = a.Close()
	_ = b.Close()
}

// copyDirection copies all bytes from src to dst.
func copyDirection(dst, src net.Conn) {
	if _, err := io.Copy(dst, src); err != nil {
		raw.Reset(dst)
		raw.Reset(src)
		return
	}

	// Forward the end as a half-close, if the connection supports it.
	if h, ok := dst.(halfCloser); ok {
		_ = h.CloseWrite()
		return
	}
	_ = dst.Close()
}

// clientKey is the context key of a request's client connection.
type clientKey struct{}

// withClient stores the client's connection in the context of its requests.
func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, clientOf(c))
}

// clientOf returns the clientConn inside wrappers such as TLS, or nil if there is none.
func clientOf(c net.Conn) *clientConn {
	for {
		if client, ok := c.(*clientConn); ok {
			return client
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = above.NetConn()
	}
}
