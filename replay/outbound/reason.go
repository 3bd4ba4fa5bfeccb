package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrNotSent is wrapped where nothing of a request left this machine.
var ErrNotSent = errors.New("not sent")

// A Reason names, for programs, why a request got no answer. All but NoAnswer
// mean that nothing of the request was sent.
type Reason string

const (
	HostNotFound         Reason = "host_not_found"
	NoConnection         Reason = "no_connection"
	CertificateUntrusted Reason = "certificate_untrusted"
	CertificateExpired   Reason = "certificate_expired" // or not valid yet
	CertificateWrongHost Reason = "certificate_wrong_host"
	CertificateInvalid   Reason = "certificate_invalid" // in any other way
	// the server speaks another protocol at an https URL
	NotTLS Reason = "not_tls"
	// the server does not offer HTTP/2, which the call needs
	NoHTTP2         Reason = "no_http2"
	HandshakeFailed Reason = "tls_handshake"
	ConnectTimeout  Reason = "connect_timeout"
	connectCanceled Reason = "canceled"
	// the HTTP client does not send such a request
	requestInvalid Reason = "request_invalid"
	NoAnswer       Reason = "no_answer" // the request was sent
)

// Progress records how far the requests of a session got. The hooks that set it run
// on the transport's goroutines.
type Progress struct {
	handshake atomic.Bool // a TCP connection was made, and TLS begun on it
	sent      atomic.Bool // a header was written
}

// Trace returns a context whose requests are recorded in at. If server is not
// nil, it becomes the address that a request went to.
func (at *Progress) Trace(ctx context.Context, server *string) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if server != nil {
				*server = i.Conn.RemoteAddr().String()
			}
		},
		TLSHandshakeStart: func() { at.handshake.Store(true) },
		WroteHeaderField:  func(string, []string) { at.sent.Store(true) },
	})
}

// Explain says why a request got no answer within limit. The reason is NoAnswer if a
// part of the request was sent.
func (at *Progress) Explain(err error, limit time.Duration) (Reason, string) {
	if at.sent.Load() {
		return NoAnswer, err.Error()
	}
	return at.unsent(err, limit)
}

// Unsent reports whether the reason means that nothing of the request was sent.
func (r Reason) Unsent() bool { return r != "" && r != NoAnswer }

// Merge adds how far another request of the session got.
func (at *Progress) Merge(other *Progress) {
	if other.handshake.Load() {
		at.handshake.Store(true)
	}
	if other.sent.Load() {
		at.sent.Store(true)
	}
}

// unsent explains an error of a request of which nothing was sent. limit is the
// time that the request had.
func (at *Progress) unsent(err error, limit time.Duration) (Reason, string) {
	if reason, text := certificateFault(err, time.Now()); reason != "" {
		return reason, text
	}
	if reason, text := protocolFault(err); reason != "" {
		return reason, text
	}
	switch dns, op := (*net.DNSError)(nil), (*net.OpError)(nil); {
	case errors.Is(err, context.DeadlineExceeded) && at.handshake.Load():
		return ConnectTimeout, fmt.Sprintf("no TLS connection within %s", limit)
	case errors.Is(err, context.DeadlineExceeded):
		return ConnectTimeout, fmt.Sprintf("no connection within %s", limit)
	case errors.Is(err, context.Canceled):
		return connectCanceled, "interrupted before there was a connection"
	case errors.As(err, &dns) && dns.IsNotFound:
		return HostNotFound, fmt.Sprintf("the host name %s was not found", dns.Name)
	case errors.As(err, &dns):
		return HostNotFound, fmt.Sprintf("the host name %s could not be looked up: %s", dns.Name, dns.Err)
	case at.handshake.Load() && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return HandshakeFailed, "the TLS handshake failed: the server closed the connection"
	case at.handshake.Load():
		return HandshakeFailed, fmt.Sprintf("the TLS handshake failed: %v", err)
	case errors.As(err, &op) && op.Op == "dial" && op.Addr != nil:
		return NoConnection, fmt.Sprintf("no connection to %s: %v", op.Addr, systemError(op.Err))
	case errors.As(err, &op):
		return NoConnection, fmt.Sprintf("no connection: %v", systemError(op.Err))
	}
	return requestInvalid, err.Error()
}

// systemError is the error of a system call without the call's name.
func systemError(err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// certificateFault explains an error of a server's certificate; "" for any other.
func certificateFault(err error, now time.Time) (Reason, string) {
	const subject = "the server's TLS certificate "
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
	)
	switch {
	case errors.As(err, &host):
		return CertificateWrongHost, subject + "is for " + hostsOf(host.Certificate) + ", not for " + host.Host
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return CertificateExpired, subject + "is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return CertificateExpired, subject + "expired on " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339)
	case errors.As(err, &unknown) && unknown.Cert != nil:
		return CertificateUntrusted, fmt.Sprintf("%sis not trusted: its issuer is %q", subject, unknown.Cert.Issuer.String())
	case errors.As(err, &unknown), errors.As(err, new(x509.SystemRootsError)):
		return CertificateUntrusted, subject + "is not trusted"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return CertificateInvalid, fmt.Sprintf("%sis not valid: %v", subject, err)
	}
	return "", ""
}

// hostsOf lists the hosts that a certificate is for.
func hostsOf(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	return strings.Join(names, ", ")
}

// protocolFault explains a connection on which the two sides found no common
// protocol; "" for any other error.
func protocolFault(err error) (Reason, string) {
	var header tls.RecordHeaderError
	switch text := err.Error(); {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &header):
		return NotTLS, "the server does not speak TLS on this port"
	// crypto/tls exports no type for a server's alert.
	case errors.Is(err, errNoHTTP2), strings.Contains(text, "remote error: tls: no application protocol"):
		return NoHTTP2, "the server does not speak HTTP/2"
	}
	return "", ""
}
