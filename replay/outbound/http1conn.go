package outbound

import (
	"context"
	"errors"
	"net"
)

// errSpeaksHTTP2 is the error of the first Read from a server of HTTP/2.
var errSpeaksHTTP2 = errors.New(OnlyHTTP2)

// An http1Conn is a connection without TLS over which HTTP/1 is sent. Its first Read fails with
// errSpeaksHTTP2 if the server speaks HTTP/2. Such a server sends its SETTINGS at once, so net/http may
// receive them before or after it writes the request, and describes each case differently.
type http1Conn struct {
	net.Conn

	// begun means that the first bytes were read.
	begun bool
}

// Read reads from the connection.
func (c *http1Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	// A connection begins with the length of a SETTINGS frame, whose first byte is 0 unless the frame has
	// more than 65,535 bytes; no answer of HTTP/1 begins with this byte.
	if !c.begun && n > 0 && p[0] == 0 {
		return 0, errSpeaksHTTP2
	}
	c.begun = c.begun || n > 0
	return n, err
}

// dialHTTP1 returns dial with connections that are http1Conns.
func dialHTTP1(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &http1Conn{Conn: conn}, nil
	}
}
