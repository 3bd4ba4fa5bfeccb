package raw

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// maxHello limits a TLS ClientHello, in bytes.
const maxHello = 64 << 10

// A Hello contains the fields of a TLS ClientHello that the proxy needs: server name and ALPN.
type Hello struct {
	// ServerName is the host name in the handshake (SNI); "" if there is none.
	ServerName string

	// ALPN are the protocols that the client offers, in order.
	ALPN []string
}

// errHelloRead ends the handshake that ReadHello simulates, after the ClientHello was parsed.
var errHelloRead = errors.New("hello read")

// ReadHello reads and parses the client's ClientHello. The bytes can be read again from the connection.
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

// A helloReader is a connection that reads head and then from the wrapped connection, stores the bytes in seen,
// and discards writes.
type helloReader struct {
	// Conn is the wrapped connection; only its deadlines and addresses are used directly.
	net.Conn
	// head are bytes that Read returns before it reads from the connection.
	head []byte
	// seen are all bytes that Read has returned.
	seen []byte
}

// Read returns the next bytes and stores them.
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

// Write discards p.
func (h *helloReader) Write(p []byte) (int, error) { return len(p), nil }

// Close does nothing.
func (h *helloReader) Close() error { return nil }
