package h1

import (
	"io"
	"net"
	"net/http"
)

// An input reads from a connection through a buffer.
type input struct {
	// conn is the connection from which is read.
	conn net.Conn

	// buf[r:w] are the bytes that were read but not consumed yet.
	buf []byte
	// r is the index in buf of the first byte that was not consumed.
	r int
	// w is the index in buf behind the last byte that was read.
	w int
}

// newInput returns an input with an empty buffer.
func newInput(conn net.Conn) input { return input{conn: conn, buf: make([]byte, bufferSize)} }

// buffered returns the bytes that were read but not consumed yet; they are valid until the next call of
// fill.
func (in *input) buffered() []byte { return in.buf[in.r:in.w] }

// consume discards the first n buffered bytes.
func (in *input) consume(n int) { in.r += n }

// fill reads once from the connection. If the buffer is full, it first doubles the buffer's size.
func (in *input) fill() error {
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
		if len(in.buf) > bufferSize {
			in.buf = make([]byte, bufferSize)
		}
	case in.w < len(in.buf):
	case in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	default:
		in.buf = append(in.buf, make([]byte, len(in.buf))...)
	}
	n, err := in.conn.Read(in.buf[in.w:])
	in.w += n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// scanHead reads until a head is complete, and returns its length in bytes, which is at most limit. It calls
// more to read more bytes into the buffer.
//
// Errors: *Malformed; those of more.
func (in *input) scanHead(limit int, more func() error) (int, error) {
	line := 0
	for {
		size, next, err := scanHead(in.buffered(), line)
		if err != nil || size > 0 && size <= limit {
			return size, err
		}
		if len(in.buffered()) > limit {
			return 0, &Malformed{http.StatusRequestHeaderFieldsTooLarge, "the header section is too long"}
		}
		line = next
		if err := more(); err != nil {
			// Without this, an endless head would fill the memory.
			return 0, err
		}
	}
}

// A replayConn is a connection whose first Read calls return head, i.e. bytes that were already read.
type replayConn struct {
	// Conn is the underlying connection.
	net.Conn
	// head are the bytes that Read returns before it reads from the connection.
	head []byte
}

// Read returns the bytes of head, then those of the connection.
func (c *replayConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn returns the wrapped connection, as the method of *tls.Conn does.
func (c *replayConn) NetConn() net.Conn { return c.Conn }

// CloseWrite half-closes the connection, or closes it if it cannot be half-closed.
func (c *replayConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite half-closes a connection, or closes one that does not support that.
func closeWrite(conn net.Conn) error {
	if h, ok := conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return conn.Close()
}

// netConn returns the network connection inside wrappers such as TLS.
func netConn(conn net.Conn) net.Conn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = above.NetConn()
	}
}

// rest returns a connection from which the buffered bytes are read first. The input must not be used
// afterwards.
func (in *input) rest() net.Conn {
	if in.r == in.w {
		return in.conn
	}
	return &replayConn{in.conn, append([]byte(nil), in.buffered()...)}
}
