package mitm

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"unwire/mitm/process"
)

// chunkSize is how much of a body is read and recorded at once, in bytes.
const chunkSize = 64 << 10

// A clientConn is a client's connection whose first bytes were read already:
// they are read again first. It tells the proxy when it is closed.
type clientConn struct {
	net.Conn
	peeked []byte
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

func (c *clientConn) Read(p []byte) (int, error) {
	if len(c.peeked) > 0 {
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// remote returns the client's address. Only the goroutine that reads calls it.
func (c *clientConn) remote() string {
	if c.address == "" {
		c.address = c.RemoteAddr().String()
	}
	return c.address
}

// readMore reads once more and appends to the peeked bytes.
func (c *clientConn) readMore(limit int) error {
	if len(c.peeked) >= limit {
		return errors.New("mitm: too many bytes before the protocol is known")
	}
	var buf [2048]byte
	n, err := c.Conn.Read(buf[:min(len(buf), limit-len(c.peeked))])
	c.peeked = append(c.peeked, buf[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// WriteTo and ReadFrom let the kernel move the bytes of a tunnel by itself.
func (c *clientConn) WriteTo(w io.Writer) (int64, error) {
	var n int
	if len(c.peeked) > 0 {
		var err error
		n, err = w.Write(c.peeked)
		c.peeked = c.peeked[n:]
		if err != nil {
			return int64(n), err
		}
	}
	m, err := io.Copy(w, c.Conn)
	return int64(n) + m, err
}

func (c *clientConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

type halfCloser interface {
	CloseWrite() error
	CloseRead() error
}

func (c *clientConn) CloseWrite() error {
	if h, ok := c.Conn.(halfCloser); ok {
		return h.CloseWrite()
	}
	return nil
}

func (c *clientConn) CloseRead() error {
	if h, ok := c.Conn.(halfCloser); ok {
		return h.CloseRead()
	}
	return nil
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

// reset closes so that the other side sees a reset, not a clean end.
func (c *clientConn) reset() {
	below := c.Conn
	for {
		above, ok := below.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		below = above.NetConn()
	}
	if t, ok := below.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
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
		for _, c := range []net.Conn{dst, src} {
			if cc, ok := c.(*clientConn); ok {
				cc.reset()
			} else {
				(&clientConn{Conn: c}).reset()
			}
		}
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

// A replayConn is a connection of which some was read, to be read again.
type replayConn struct {
	net.Conn
	head []byte
}

func (c *replayConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn returns what is below, as a *tls.Conn's does.
func (c *replayConn) NetConn() net.Conn { return c.Conn }

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
