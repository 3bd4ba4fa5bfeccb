// Package connection speaks over what carries messages instead of requests with answers:
// a WebSocket, or the bytes inside TCP or TLS.
//
//	conn, shake, err := connection.DialWebSocket(ctx, target)
//	err = conn.Send(ctx, connection.Message{Opcode: captures.OpText, Data: text})
//	m, err := conn.Receive(ctx)
//
// In go a Target, which says what is dialled and by which policy, and messages. Out come
// messages until io.EOF. Turns merges what a capture has of bytes without messages: how TCP
// divides them is chance, which side speaks is not. A TurnReader does the same with what
// arrives.
//
// Package replay sends captured exchanges over it. The package knows no plans.
//
// Source: replay/README.md#streams
package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"

	"unwire/captures"
	"unwire/replay/outbound"
)

// A Target is the server to which a WebSocket or raw connection is opened, with the options for doing
// so.
type Target struct {
	// URL is the server's URL, with the scheme http (no TLS) or https (TLS).
	URL *url.URL

	// Headers are the HTTP headers of the WebSocket handshake.
	Headers captures.Headers

	// Compress offers compression of a WebSocket's messages.
	Compress bool

	// ServerName is the host name in the TLS handshake (SNI); "" means the host of URL.
	ServerName string

	// ALPN is the application protocol offered in the TLS handshake, such as "h2"; "" for none.
	ALPN string

	// Local restricts connections to this machine's loopback addresses.
	Local bool

	// MaxBytes is the largest message that may be received, in bytes.
	MaxBytes int64

	// Progress, if not nil, records how far the connection was established.
	Progress *outbound.Progress

	// Policy decides which servers may be contacted, and how their certificates are verified.
	Policy outbound.Policy
}

// A Message is a WebSocket message, or some bytes of a raw TCP or TLS connection.
type Message struct {
	// Opcode is OpText, OpBinary or OpClose for a WebSocket; 0 for a raw connection.
	Opcode captures.Opcode

	// Data is the payload of the WebSocket message. On a raw connection, it is any number of
	// consecutive bytes.
	Data []byte
}

// A Conn is an open WebSocket or raw connection. One goroutine may send while another receives.
type Conn interface {
	// Send sends a message. It may close the connection if ctx ends first.
	Send(ctx context.Context, m Message) error

	// Receive waits for the next message. The close frame of a WebSocket is returned as a message, the
	// last one.
	//
	// Errors: io.EOF after the end; the cause of ctx; errors of the connection.
	Receive(ctx context.Context) (Message, error)

	// Finish ends the sending direction (half-close). For a WebSocket it sends a close frame with code
	// and reason.
	Finish(code int, reason string) error

	// Close closes the connection immediately.
	Close() error
}

// receiveSize is the size in bytes of the buffer for one read of a raw connection.
const receiveSize = 64 << 10

// A rawConn is a Conn over TCP or TLS, whose bytes are not divided into messages.
type rawConn struct {
	// Conn is the TCP or TLS connection.
	net.Conn

	// buf is the buffer for reading.
	buf []byte
}

// DialRaw opens a TCP connection, with TLS if the URL's scheme is https. state is nil without TLS.
func DialRaw(ctx context.Context, t Target) (conn Conn, state *tls.ConnectionState, err error) {
	c, state, err := outbound.Dial(ctx, t.URL, outbound.Secure{ServerName: t.ServerName, ALPN: t.ALPN}, t.Local, t.Progress, t.Policy)
	if err != nil {
		return nil, nil, err
	}
	return &rawConn{Conn: c, buf: make([]byte, receiveSize)}, state, nil
}

// Send writes the bytes of m. If ctx ends first, the connection is closed.
func (c *rawConn) Send(ctx context.Context, m Message) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_, err := c.Write(m.Data)
	return err
}

// Receive reads the bytes that are available, or waits for some. If ctx ends first, the connection is
// closed.
func (c *rawConn) Receive(ctx context.Context) (Message, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	n, err := c.Read(c.buf)
	switch {
	case n > 0:
		return Message{Data: append([]byte(nil), c.buf[:n]...)}, nil
	case ctx.Err() != nil:
		return Message{}, context.Cause(ctx)
	case err == nil:
		return Message{}, io.ErrNoProgress
	case errors.Is(err, net.ErrClosed):
		return Message{}, io.EOF
	}
	return Message{}, err
}

// Finish half-closes the connection, or closes it if that is not supported; the arguments are ignored.
func (c *rawConn) Finish(int, string) error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
