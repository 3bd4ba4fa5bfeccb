// Package raw detects the protocol of a connection by its first bytes, and relays and records traffic that is
// not HTTP. Package mitm uses it.
//
//	client := raw.NewConn(conn, nil)
//	kind, err := client.Sniff(time.Second)
//	...
//	raw.Relay(ctx, raw.Config{Client: client, Server: server, Begin: begin})
//
// A Conn can be read ahead. Sniff decides by the client's first bytes; AwaitFirst finds out which side sends
// first. Relay forwards both directions without change or delay, including half-closes and resets, and records
// them as chunks.
package raw

import (
	"errors"
	"io"
	"net"
)

// A Conn is a connection whose bytes can be read ahead: peeked bytes are returned again by Read.
type Conn struct {
	// Conn is the underlying connection.
	net.Conn

	// peeked are the bytes that were read ahead and not consumed.
	peeked []byte

	// err is the error that ended reading; it is returned after the peeked bytes.
	err error
	// ended means that the underlying connection has ended.
	ended bool
}

// NewConn returns a Conn for a connection from which head was read already.
func NewConn(c net.Conn, head []byte) *Conn { return &Conn{Conn: c, peeked: head} }

// Peeked returns the bytes that were read ahead and not consumed.
func (c *Conn) Peeked() []byte { return c.peeked }

// Unread makes p the bytes that Read returns next.
func (c *Conn) Unread(p []byte) { c.peeked = append(append([]byte(nil), p...), c.peeked...) }

// Read returns peeked bytes, or reads from the connection.
func (c *Conn) Read(p []byte) (int, error) {
	switch {
	case len(c.peeked) > 0:
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	case c.err != nil:
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	c.ended = c.ended || err == io.EOF
	return n, err
}

// ReadMore reads once more from the connection and adds the bytes to the peeked ones, up to limit bytes in
// total.
func (c *Conn) ReadMore(limit int) error {
	if len(c.peeked) >= limit {
		return errors.New("the client sent too many bytes before unwire recognised the protocol")
	}
	var buf [2048]byte
	n, err := c.Conn.Read(buf[:min(len(buf), limit-len(c.peeked))])
	c.peeked = append(c.peeked, buf[:n]...)
	c.ended = c.ended || err == io.EOF
	if n > 0 {
		return nil
	}
	return err
}

// WriteTo copies all bytes from the connection to w. With ReadFrom, it lets the kernel copy the bytes of a
// tunnel (splice).
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	var n int
	if len(c.peeked) > 0 {
		var err error
		n, err = w.Write(c.peeked)
		c.peeked = c.peeked[n:]
		if err != nil {
			return int64(n), err
		}
	}
	if c.err != nil {
		return int64(n), ignoreEOF(c.err)
	}
	m, err := io.Copy(w, c.Conn)
	return int64(n) + m, err
}

// ReadFrom copies all bytes from r to the connection.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// ignoreEOF returns nil for io.EOF, and err otherwise.
func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// CloseWrite closes the writing direction, if the connection supports it.
func (c *Conn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}

// CloseRead closes the reading direction, if the connection supports that.
func (c *Conn) CloseRead() error {
	if h, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return h.CloseRead()
	}
	return nil
}

// NetConn returns the underlying connection, as *tls.Conn does.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Reset closes a connection so that the other side receives a TCP reset instead of a clean end.
func Reset(c net.Conn) {
	below := lowest(c)
	if t, ok := below.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = below.Close()
	_ = c.Close()
}

// lowest returns the network connection inside all wrappers, such as TLS.
func lowest(c net.Conn) net.Conn {
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = above.NetConn()
	}
}
