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

// chunkSize is how much of a body is read and recorded at once, in bytes.
const chunkSize = 64 << 10

// A clientConn is a client's connection whose first bytes may have been read already.
// It tells the proxy when it is closed.
type clientConn struct {
	*raw.Conn
	target target

	// recorder records the connection's exchanges, with the client's program.
	recorder *process.Recorder

	// via names the instances of unwire that the connection has passed, if it came
	// through one.
	via string

	// origin is the server that the client takes the proxy for; nil: none.
	origin *url.URL

	// allowsControl says that it came in through a listener with control endpoints.
	allowsControl bool

	// address is the client's, once it was asked for.
	address string

	// unreachedErr is why there is no connection to the server of an HTTP/2
	// client's: its requests are answered with that.
	unreachedErr error

	// lastAnswer is when the last answer over HTTP/1 ended, in nanoseconds since 1970; 0:
	// there was none.
	lastAnswer atomic.Int64

	// onClose and, once set, onUnusedClose are called when the connection is closed.
	onClose       func()
	onUnusedClose atomic.Pointer[func()]
	closeOnce     sync.Once
}

// remote returns the client's address. Only the goroutine that reads calls it.
func (c *clientConn) remote() string {
	if c.address == "" {
		c.address = c.RemoteAddr().String()
	}
	return c.address
}

type halfCloser interface {
	CloseWrite() error
	CloseRead() error
}

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

// A connQueue is a listener whose connections are handed to it.
type connQueue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newConnQueue() *connQueue {
	return &connQueue{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// push hands a connection over; the queue's server closes it from then on.
func (q *connQueue) push(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *connQueue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr is unspecified: the connections came in through other listeners.
func (q *connQueue) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

// tunnelConns copies both ways until both ends are closed. The end of one direction
// half-closes the other side; an error on one side resets the other.
func tunnelConns(a *clientConn, b net.Conn) {
	down := make(chan struct{})
	go func() {
		defer close(down)
		copyHalf(a, b)
	}()
	copyHalf(b, a)
	<-down
	_ = a.Close()
	_ = b.Close()
}

func copyHalf(dst, src net.Conn) {
	if _, err := io.Copy(dst, src); err != nil {
		raw.Reset(dst)
		raw.Reset(src)
		return
	}
	if h, ok := dst.(halfCloser); ok {
		_ = h.CloseWrite()
		return
	}
	_ = dst.Close()
}

type clientKey struct{}

// withClient hands a client's connection to its requests.
func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, clientOf(c))
}

// clientOf returns the client's connection below whatever was put on it.
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
