package h1

import (
	"io"
	"net"
	"net/http"
)

// An input is a connection that is read through a buffer.
type input struct {
	conn net.Conn

	// buf[r:w] was read and not used yet.
	buf  []byte
	r, w int
}

func newInput(conn net.Conn) input { return input{conn: conn, buf: make([]byte, bufferSize)} }

func (in *input) buffered() []byte { return in.buf[in.r:in.w] }

func (in *input) consume(n int) { in.r += n }

// fill reads once more. The buffer grows as long as it is full.
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

// scanHead reads until a head is complete, and returns its length. more reads.
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
			return 0, &Malformed{http.StatusRequestHeaderFieldsTooLarge, "the head is too long"}
		}
		line = next
		if err := more(); err != nil {
			return 0, err
		}
	}
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

// CloseWrite closes one direction, if the connection can.
func (c *replayConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite half-closes a connection, or closes one that has no halves.
func closeWrite(conn net.Conn) error {
	if h, ok := conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return conn.Close()
}

// netConn returns what is at the bottom of a connection.
func netConn(conn net.Conn) net.Conn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = above.NetConn()
	}
}

// rest returns a connection that begins with what is buffered.
func (in *input) rest() net.Conn {
	if in.r == in.w {
		return in.conn
	}
	return &replayConn{in.conn, append([]byte(nil), in.buffered()...)}
}
