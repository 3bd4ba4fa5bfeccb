package mitm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/mitm/raw"
)

// certificateResultTimeout is how long an HTTP/2 server may take, after the TLS handshake, to begin or to
// refuse the client certificate.
const certificateResultTimeout = 500 * time.Millisecond

// A serverConn is a TLS connection to a server, which may request a client certificate.
type serverConn struct {
	// Conn is the TLS connection.
	*tls.Conn

	// host is the name of the server, for errors.
	host string

	// certificate is the client certificate that is sent if the server requests one; nil for none.
	certificate *tls.Certificate

	// certificateRequested means that the server requested a client certificate.
	certificateRequested bool
	// dataReceived means that the server has sent data after the handshake.
	dataReceived bool

	// recorded caches the TLS state in the captured form.
	recorded atomic.Pointer[captures.TLS]
	// address caches the server's address as text.
	address atomic.Pointer[string]

	// head are bytes that were read from the server in advance.
	head []byte
}

// addressOf returns the address of a connection's server as text, for exchanges. It caches it if it can.
func addressOf(server net.Conn) string {
	c, ok := server.(*serverConn)
	if !ok {
		return server.RemoteAddr().String()
	}
	if known := c.address.Load(); known != nil {
		return *known
	}
	address := c.RemoteAddr().String()
	c.address.Store(&address)
	return address
}

// clientCertificate implements tls.Config.GetClientCertificate.
func (c *serverConn) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.certificateRequested = true
	if c.certificate == nil {
		return new(tls.Certificate), nil
	}
	return c.certificate, nil
}

// Read reads from the server. It returns a certificateError if the server refused the client certificate.
func (c *serverConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		err = c.refusal(err)
	}
	c.dataReceived = c.dataReceived || n > 0
	return n, err
}

// awaitCertificateResult waits for the first bytes of an HTTP/2 server that requested a client certificate. In
// TLS 1.3, the server refuses a certificate only after the handshake. For HTTP/1, the first request shows it.
//
// Source: RFC 8446, section 4.4.2.4; RFC 9113, section 3.4
func (c *serverConn) awaitCertificateResult() error {
	if s := c.ConnectionState(); !c.certificateRequested || s.Version < tls.VersionTLS13 || s.NegotiatedProtocol != protoH2 {
		return nil
	}

	// In HTTP/2, the server sends SETTINGS first.
	// In HTTP/2, the server sends SETTINGS first.
	_ = c.SetReadDeadline(time.Now().Add(certificateResultTimeout))
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	_ = c.SetReadDeadline(time.Time{})
	c.head = buf[:n]
	if err != nil && !raw.IsTimeout(err) {
		return err
	}
	return nil
}

// refusal converts an error of reading to a certificateError if it is the server's reaction to the client
// certificate; otherwise it returns err.
func (c *serverConn) refusal(err error) error {
	var op *net.OpError
	if !c.certificateRequested || c.dataReceived || !errors.As(err, &op) || op.Op != "remote error" || errors.As(err, new(*certificateError)) {
		return err
	}
	return &certificateError{host: c.host, given: c.certificate != nil, err: err}
}

// A certificateError means that a server rejected the client certificate, or required one that is
// missing.
type certificateError struct {
	// host is the name of the server.
	host string

	// given means that a client certificate was sent.
	given bool
	// err is the error of the TLS connection.
	err error
}

// Error describes the problem and the remedy.
func (e *certificateError) Error() string {
	if e.given {
		return fmt.Sprintf("%s does not accept the client certificate (%v): give another one with --client-cert and --client-key", e.host, e.err)
	}
	return fmt.Sprintf("%s asks for a client certificate and does not go on without one (%v): give it with --client-cert PEM --client-key PEM", e.host, e.err)
}

// Unwrap returns the TLS alert.
func (e *certificateError) Unwrap() error { return e.err }

// recorded returns the TLS parameters to be recorded for the failed connection.
func (e *certificateError) recorded() captures.TLS {
	return captures.TLS{ClientCertificate: certificateState(e.given)}
}

// certificateState returns the recorded state of a client certificate that the server requested; given means
// that one was sent.
func certificateState(given bool) captures.ClientCertificate {
	if given {
		return captures.CertificateSent
	}
	return captures.CertificateRequested
}
