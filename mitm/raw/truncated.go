package raw

import (
	"crypto/tls"
	"errors"
	"net"
)

// errClientClosed is the error of a connection whose client had ended it before.
var errClientClosed = errors.New("the client had closed the connection when the server still sent")

// Alerts of TLS with which servers answer a client that ends without close_notify: OpenSSL
// with the first, Java with the second.
//
// Source: RFC 8446, sections 6.1 and 6.2
const (
	alertDecodeError       = tls.AlertError(50)
	alertUnexpectedMessage = tls.AlertError(10)
)

// isTruncationAlert reports whether an error is the alert of a server that missed the
// client's close_notify. Many clients send none, so the connection has ended as usual.
func isTruncationAlert(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" || op.Err == nil {
		return false
	}
	text := op.Err.Error() // its type is not exported
	return text == alertDecodeError.Error() || text == alertUnexpectedMessage.Error()
}

// isTruncated reports whether a connection, whose reader has come to the end, is TLS that
// ended without saying so.
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

func (c *Conn) hasEnded() bool { return c.ended }
