// Package raw tells what a connection carries by its first bytes, and relays what is not
// HTTP. Package mitm is its user:
//
//	client := raw.NewConn(conn, nil)
//	kind, err := client.Sniff(time.Second)
//	...
//	raw.Relay(ctx, raw.Config{Client: client, Server: server, Begin: begin})
//
// A Conn has its first bytes read again. Sniff decides by those of the client; AwaitFirst
// finds out which side speaks first. A Relay passes both directions on as they are, each
// byte when it comes, with half-closes and resets, and records them as chunks. Nothing is
// ever written that the other side has not sent.
package raw

import (
	"errors"
	"io"
	"net"
)

// A Conn is a connection whose first bytes were read already: they are read again first.
type Conn struct {
	net.Conn
	peeked []byte

	// err is what reading ended with, to be returned behind the peeked bytes; ended says
	// that it was the end of the connection below.
	err   error
	ended bool
}

// NewConn returns a connection that begins with bytes that were read from it.
func NewConn(c net.Conn, head []byte) *Conn { return &Conn{Conn: c, peeked: head} }

// Peeked returns the bytes that will be read again.
func (c *Conn) Peeked() []byte { return c.peeked }

// Unread puts bytes in front of what is read next.
func (c *Conn) Unread(p []byte) { c.peeked = append(append([]byte(nil), p...), c.peeked...) }

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

// ReadMore reads once more and appends to the peeked bytes.
//
// Limits: limit bytes in all.
func (c *Conn) ReadMore(limit int) error {
	if len(c.peeked) >= limit {
		return errors.New("too many bytes before the protocol is known")
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

// WriteTo and ReadFrom let the kernel move the bytes of a tunnel by itself.
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

func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// CloseWrite ends what is written, if the connection can end one direction.
func (c *Conn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}

// CloseRead ends what is read, if the connection can end one direction.
func (c *Conn) CloseRead() error {
	if h, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return h.CloseRead()
	}
	return nil
}

// NetConn returns what is below, as a *tls.Conn's does.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Reset closes a connection so that the other side sees a reset, not a clean end, nor that
// of TLS.
func Reset(c net.Conn) {
	below := lowest(c)
	if t, ok := below.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = below.Close()
	_ = c.Close()
}

// lowest returns the connection below whatever was put on it.
func lowest(c net.Conn) net.Conn {
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = above.NetConn()
	}
}
