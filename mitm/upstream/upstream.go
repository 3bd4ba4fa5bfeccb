// Package upstream connects to servers through the user's own proxy: an HTTP proxy, with or without TLS, by
// CONNECT, or a SOCKS 5 proxy. Package mitm uses it.
//
//	proxies, ignored, err := upstream.FromEnvironment(os.Getenv, ownAddress)
//	...
//	d := &upstream.Dialer{Proxies: proxies, Direct: new(net.Dialer).DialContext}
//	conn, err := d.Dial(ctx, proxies.For("https", "api.example:443"), "api.example:443", id)
//
// Errors about the proxy are of type *Error, which names the proxy without its password and describes a remedy.
//
// Source: mitm/README.md#upstream-proxies
package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"
)

// ViaHeader is the header with the ids of the unwire proxies that a request has passed through. One unwire
// sends it to the next one, if that is its upstream proxy, to detect loops. Servers never receive it.
const ViaHeader = "Unwire-Via"

// dialTimeout limits how long a proxy may take to connect. It is shorter than clients wait for TLS, so that they
// receive the error.
const dialTimeout = 12 * time.Second

// ErrLoop means that the upstream proxy forwards back to this proxy.
var ErrLoop = errors.New("the proxy leads back to this instance of unwire")

// An Error is a failure that concerns the user's proxy, rather than a server.
type Error struct {
	// Proxy is the URL of the proxy without user and password.
	Proxy string

	// What describes the failure, and Remedy what the user can do about it.
	What, Remedy string

	// Err is the underlying error, or nil.
	Err error
}

// Error returns a sentence with the failure and the remedy.
func (e *Error) Error() string {
	text := "upstream proxy " + e.Proxy + ": " + e.What
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return text
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// A proxiedConn is a connection through the user's proxy, or to a proxy that forwards requests.
type proxiedConn struct {
	// Conn is the connection to the proxy, or through it to the server.
	net.Conn

	// proxy is the URL of the proxy without user and password.
	proxy string

	// head are bytes that were read after the proxy's response.
	head []byte
}

// Read returns the bytes of head, then those of the connection.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn returns the connection to the proxy.
func (c *proxiedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the direction to the server, if the underlying connection supports it.
func (c *proxiedConn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}

// CloseRead closes the reading direction, if the underlying connection supports that.
func (c *proxiedConn) CloseRead() error {
	if h, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return h.CloseRead()
	}
	return nil
}

// ProxyOf returns the URL, without user name and password, of the proxy that a connection uses; "" if none.
func ProxyOf(conn net.Conn) string {
	for {
		if c, ok := conn.(*proxiedConn); ok {
			return c.proxy
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return ""
		}
		conn = above.NetConn()
	}
}

// A Dialer connects to servers, directly or through a proxy.
type Dialer struct {
	// Proxies are the proxies to use; nil connects directly.
	Proxies *Proxies

	// Direct opens TCP connections: to proxies and, if no proxy is used, to servers. Required.
	Direct func(ctx context.Context, network, addr string) (net.Conn, error)

	// Roots are the CAs that verify https proxies; nil means the system's trust store.
	Roots *x509.CertPool
}

// Dial connects to addr through a proxy, or directly if proxy is nil. via lists the ids of the unwire proxies
// that the connection has passed through, including this one.
//
// Errors: *Error; that of Direct if proxy is nil.
func (d *Dialer) Dial(ctx context.Context, proxy *url.URL, addr, via string) (net.Conn, error) {
	if proxy == nil {
		return d.Direct(ctx, "tcp", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.connect(ctx, proxy)
	if err != nil {
		return nil, err
	}

	// What the proxy does not answer in time is given up.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if speaksHTTP(proxy) {
		err = connectHTTP(conn, proxy, addr, via)
	} else {
		err = connectSOCKS(ctx, conn, proxy, addr, via)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, d.explain(ctx, proxy, addr, err)
	}
	return conn, nil
}

// explain returns an error that explains why a proxy did not connect to addr because of err.
func (d *Dialer) explain(ctx context.Context, proxy *url.URL, addr string, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return &Error{Name(proxy), "the proxy did not answer in time to a request to connect to " + addr, "check that the proxy works, and can connect to this address", ctx.Err()}
	}
	return &Error{Name(proxy), fmt.Sprintf("the proxy closed the connection when asked for %s (%v)", addr, err), kindHint(proxy), err}
}

// kindHint returns a hint for the user if a proxy seems to be of another kind than its URL says, such as SOCKS
// instead of HTTP; otherwise "".
func kindHint(proxy *url.URL) string {
	if speaksHTTP(proxy) {
		return "check that the proxy is an HTTP proxy; the URL of a SOCKS proxy is socks5h://" + proxy.Host + ", and of a proxy with TLS https://" + proxy.Host
	}
	return "check that the proxy is a SOCKS 5 proxy; the URL of an HTTP proxy is http://" + proxy.Host
}

// DialProxy connects to an HTTP proxy to which requests are sent instead of the server, with TLS if the proxy's
// URL is https.
//
// Errors: *Error.
func (d *Dialer) DialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	conn, err := d.connect(ctx, proxy)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// connect connects to a proxy, with TLS if its URL is https.
func (d *Dialer) connect(ctx context.Context, proxy *url.URL) (*proxiedConn, error) {
	raw, err := d.Direct(ctx, "tcp", proxy.Host)
	if err != nil {
		return nil, &Error{Name(proxy), "the proxy cannot be reached: " + connectReason(err), "start the proxy, correct --upstream-proxy or the proxy variable, or use --upstream-proxy none", err}
	}
	conn := &proxiedConn{Conn: raw, proxy: Name(proxy)}
	if proxy.Scheme != "https" {
		return conn, nil
	}
	// Its secrets go to no key log: with them, whoever has the packets would read
	// the proxy's password.
	secure := tls.Client(raw, &tls.Config{ServerName: proxy.Hostname(), RootCAs: d.Roots, MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, tlsError(proxy, err)
	}
	conn.Conn = secure
	return conn, nil
}

// tlsError returns the error for a failed TLS handshake with a proxy.
func tlsError(proxy *url.URL, err error) error {
	var untrusted *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted):
		return &Error{Name(proxy), fmt.Sprintf("the proxy's certificate is not trusted by unwire: %v", untrusted.Err), "if you trust the proxy, repeat the command with --upstream-ca PEM (a file with the proxy's CA)", err}
	case errors.As(err, &notTLS):
		return &Error{Name(proxy), "the proxy does not use TLS", "the URL of an HTTP proxy without TLS is http://" + proxy.Host, err}
	}
	return &Error{Name(proxy), fmt.Sprintf("TLS with the proxy failed: %v", err), kindHint(proxy), err}
}

// connectReason returns why a TCP connection failed, without the address.
func connectReason(err error) string {
	var code syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &code):
		return code.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}

// A ConnectError is the error for a server to which no TCP connection could be opened.
type ConnectError struct {
	// Addr is the server's address.
	Addr string

	// Err is the cause.
	Err error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("no connection to %s: %s", e.Addr, connectReason(e.Err))
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }
