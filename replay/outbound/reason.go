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
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrNotSent reports that no part of a request left this machine.
var ErrNotSent = errors.New("not sent")

// A Reason classifies, for programs, why a request got no response. Except for NoAnswer, no part of the
// request was sent.
type Reason string

const (
	// HostNotFound means that the host's name could not be resolved.
	HostNotFound Reason = "host_not_found"
	// NoConnection means that no TCP connection to the server could be opened.
	NoConnection Reason = "no_connection"
	// CertificateUntrusted means that no trusted authority has signed the server's certificate.
	CertificateUntrusted Reason = "certificate_untrusted"
	// CertificateExpired also covers certificates that are not valid yet.
	CertificateExpired Reason = "certificate_expired"
	// CertificateWrongHost means that the certificate is for other host names.
	CertificateWrongHost Reason = "certificate_wrong_host"
	// CertificateInvalid is any other problem with the certificate.
	CertificateInvalid Reason = "certificate_invalid"
	// NotTLS means that the server does not speak TLS, although the URL is https.
	NotTLS Reason = "not_tls"
	// NoHTTP2 means that the server does not offer HTTP/2, which the call needs.
	NoHTTP2 Reason = "no_http2"
	// HandshakeFailed means that the TLS handshake failed for another reason.
	HandshakeFailed Reason = "tls_handshake"
	// ConnectTimeout means that the connection took too long.
	ConnectTimeout  Reason = "connect_timeout"
	connectCanceled Reason = "canceled"
	// requestInvalid means that the HTTP client refuses to send such a request.
	requestInvalid Reason = "request_invalid"
	// NoAnswer means that the request was sent, but no response arrived.
	NoAnswer Reason = "no_answer"
)

// A Progress records how far a request got before it failed. Several requests may share it, and it may
// be used concurrently.
type Progress struct {
	// handshake means that a TCP connection was opened and the TLS handshake has begun.
	handshake atomic.Bool
	// sent means that the request headers were written.
	sent atomic.Bool
}

// Trace returns a context for a request whose progress is recorded in at. If server is not nil, it is
// set to the address of the server.
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

// Explain returns the kind and the description of the error err, with which a request ended before any
// response arrived. The kind is NoAnswer if a part of the request was sent, or if the server answers in
// another HTTP version (then it may have been sent). limit is the request's timeout.
func (at *Progress) Explain(err error, limit time.Duration) (Reason, string) {
	switch fault := versionFault(err); {
	case fault != "":
		return NoAnswer, fault
	case at.sent.Load():
		return NoAnswer, err.Error()
	}
	return at.unsent(err, limit)
}

// Unsent reports whether the reason means that nothing of the request was sent.
func (r Reason) Unsent() bool { return r != "" && r != NoAnswer }

// Merge adds the progress of another request.
func (at *Progress) Merge(other *Progress) {
	if other.handshake.Load() {
		at.handshake.Store(true)
	}
	if other.sent.Load() {
		at.sent.Store(true)
	}
}

// unsent is Explain for a request of which no part was sent.
func (at *Progress) unsent(err error, limit time.Duration) (Reason, string) {
	// The specific causes first: certificates, then protocols, then the network.
	if reason, text := certificateFault(err, time.Now()); reason != "" {
		return reason, text
	}
	if reason, text := protocolFault(err); reason != "" {
		return reason, text
	}
	// How far the connection got decides between causes with the same error.
	switch dns, op := (*net.DNSError)(nil), (*net.OpError)(nil); {
	case errors.Is(err, context.DeadlineExceeded) && at.handshake.Load():
		return ConnectTimeout, fmt.Sprintf("no TLS connection within %s", limit)
	case errors.Is(err, context.DeadlineExceeded):
		return ConnectTimeout, fmt.Sprintf("no connection within %s", limit)
	case errors.Is(err, context.Canceled):
		return connectCanceled, "interrupted before the connection was established"
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

// systemError returns the error of a system call that err wraps, without the call's name; err itself if
// there is none.
func systemError(err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// certificateFault explains an error of verifying the server's certificate; both results are "" for any
// other error.
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

// hostsOf returns the host names for which a certificate is valid, as one text.
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

// Explanations of a response in another HTTP version than the request, which the server could not read.
const (
	OnlyHTTP2 = "the server answers in HTTP/2 only, as servers of gRPC do"
	OnlyHTTP1 = "the server answers in HTTP/1.1 only"

	// neverHTTP2 also describes a server that closes the connection at once.
	neverHTTP2 = "the server ended the connection without an answer in HTTP/2; it may support HTTP/1.1 only"
)

// versionFault explains the error that results from a response in another HTTP version than the
// request; "" for any other error. It compares texts where net/http and x/net export no types for these
// errors.
func versionFault(err error) string {
	switch text := err.Error(); {
	case errors.Is(err, errSpeaksHTTP2):
		return OnlyHTTP2
	// An answer to HTTP/1 over TLS that begins like a SETTINGS frame; see http1Conn.
	case strings.Contains(text, "malformed HTTP") && strings.Contains(text, `"\x00\x`):
		return OnlyHTTP2
	case strings.Contains(text, "looked like an HTTP/1.1 header"):
		return OnlyHTTP1
	// The connection ended before the request was written, so net/http does not say why.
	case strings.Contains(text, "http2: client conn could not be established"):
		return neverHTTP2
	}
	return ""
}

// IsVersionFault reports whether the message of a Failure, or a text that contains it, says that the server
// speaks another version of HTTP than the request.
func IsVersionFault(message string) bool {
	return slices.ContainsFunc([]string{OnlyHTTP2, OnlyHTTP1, neverHTTP2}, func(fault string) bool { return strings.Contains(message, fault) })
}

// protocolFault explains the error of a connection on which both sides support no common protocol; both
// results are "" for any other error.
func protocolFault(err error) (Reason, string) {
	var header tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &header):
		return NotTLS, "the server does not speak TLS on this port"
	case errors.Is(err, ErrNoHTTP2), isNoALPN(err):
		return NoHTTP2, "the server does not support HTTP/2"
	}
	return "", ""
}
