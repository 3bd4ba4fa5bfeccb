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

// verdictDelay is how long a server that speaks HTTP/2 has to begin, or to refuse the
// client certificate, or that there is none.
const verdictDelay = 500 * time.Millisecond

// A serverConn is TLS with a server, which may ask for a client certificate.
type serverConn struct {
	*tls.Conn

	// host is the server's name, for errors.
	host string

	// certificate is shown to a server that asks; nil: there is none.
	certificate *tls.Certificate

	// asked says that the server has asked for a client certificate, answered that
	// it has sent something since.
	asked, answered bool

	// recorded is what is recorded of it, once it was asked for.
	recorded atomic.Pointer[captures.TLS]

	// head was read ahead.
	head []byte
}

// clientCertificate is tls.Config.GetClientCertificate.
func (c *serverConn) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.asked = true
	if c.certificate == nil {
		return new(tls.Certificate), nil
	}
	return c.certificate, nil
}

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
	c.answered = c.answered || n > 0
	return n, err
}

// awaitVerdict waits for a server that has asked for a client certificate to begin: in
// TLS 1.3 it says that it does not accept the answer after the handshake. Over HTTP/1
// the first request finds out.
//
// Source: RFC 8446, section 4.4.2.4; RFC 9113, section 3.4
func (c *serverConn) awaitVerdict() error {
	if s := c.ConnectionState(); !c.asked || s.Version < tls.VersionTLS13 || s.NegotiatedProtocol != protoH2 {
		return nil
	}
	_ = c.SetReadDeadline(time.Now().Add(verdictDelay))
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	_ = c.SetReadDeadline(time.Time{})
	c.head = buf[:n]
	if err != nil && !raw.IsTimeout(err) {
		return err
	}
	return nil
}

// refusal returns a certificateError if an error is the server's answer to the client
// certificate, and otherwise the error as it is.
func (c *serverConn) refusal(err error) error {
	var op *net.OpError
	if !c.asked || c.answered || !errors.As(err, &op) || op.Op != "remote error" || errors.As(err, new(*certificateError)) {
		return err
	}
	return &certificateError{host: c.host, given: c.certificate != nil, err: err}
}

// A certificateError says that a server did not accept a client without a certificate,
// or not with the one that was given.
type certificateError struct {
	host  string
	given bool
	err   error
}

func (e *certificateError) Error() string {
	if e.given {
		return fmt.Sprintf("%s does not accept the client certificate (%v): give another one with --client-cert and --client-key", e.host, e.err)
	}
	return fmt.Sprintf("%s asks for a client certificate and does not go on without one (%v): give it with --client-cert PEM --client-key PEM", e.host, e.err)
}

func (e *certificateError) Unwrap() error { return e.err }

// recorded is what is recorded of the TLS that has failed so.
func (e *certificateError) recorded() captures.TLS {
	return captures.TLS{ClientCertificate: certificateState(e.given)}
}

func certificateState(given bool) captures.ClientCertificate {
	if given {
		return captures.CertificateSent
	}
	return captures.CertificateRequested
}
