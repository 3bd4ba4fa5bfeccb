package raw

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// maxHello bounds a ClientHello, in bytes.
const maxHello = 64 << 10

// A Hello is what the proxy needs of TLS's ClientHello.
type Hello struct {
	ServerName string

	// ALPN are the protocols that the client offers, in its order.
	ALPN []string
}

var errHelloRead = errors.New("hello read")

// ReadHello reads a ClientHello and leaves it to be read again.
func (c *Conn) ReadHello(ctx context.Context) (Hello, error) {
	var h Hello
	rec := &helloReader{Conn: c.Conn, head: c.peeked}
	err := tls.Server(rec, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h = Hello{info.ServerName, info.SupportedProtos}
		return nil, errHelloRead
	}}).HandshakeContext(ctx)
	c.peeked = append(rec.seen, rec.head...)
	if !errors.Is(err, errHelloRead) {
		return h, err
	}
	return h, nil
}

// A helloReader keeps what is read from it, and answers nothing.
type helloReader struct {
	net.Conn
	head, seen []byte
}

func (h *helloReader) Read(p []byte) (n int, err error) {
	if len(h.seen) > maxHello {
		return 0, errors.New("the ClientHello is too long")
	}
	if len(h.head) > 0 {
		n = copy(p, h.head)
		h.head = h.head[n:]
	} else {
		n, err = h.Conn.Read(p)
	}
	h.seen = append(h.seen, p[:n]...)
	return n, err
}

func (h *helloReader) Write(p []byte) (int, error) { return len(p), nil }
func (h *helloReader) Close() error                { return nil }
