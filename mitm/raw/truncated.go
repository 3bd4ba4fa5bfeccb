package raw

import (
	"crypto/tls"
	"errors"
	"net"
)

// errClientClosed is the recorded error if the server continued to send after the client had closed the
// connection.
var errClientClosed = errors.New("the client closed the connection while the server was still sending")

// Alerts by which servers react to a client that ends without close_notify: OpenSSL sends the first, Java the
// second.
//
// Source: RFC 8446, sections 6.1 and 6.2
const (
	alertDecodeError       = tls.AlertError(50)
	alertUnexpectedMessage = tls.AlertError(10)
)

// isTruncationAlert reports whether an error is the TLS alert with which a server reacts to a missing
// close_notify. Many clients send none, so this counts as a normal end.
func isTruncationAlert(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" || op.Err == nil {
		return false
	}
	// The type of the error is not exported.
	text := op.Err.Error()
	return text == alertDecodeError.Error() || text == alertUnexpectedMessage.Error()
}

// isTruncated reports whether a connection that has ended is TLS and ended without close_notify.
func isTruncated(c net.Conn) bool {
	inTLS := false
	for {
		if below, ok := c.(interface{ hasEnded() bool }); ok && inTLS && below.hasEnded() {
			return true
		}
		if _, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
			inTLS = true
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		c = above.NetConn()
	}
}

// hasEnded reports whether the underlying connection has ended.
func (c *Conn) hasEnded() bool { return c.ended }
