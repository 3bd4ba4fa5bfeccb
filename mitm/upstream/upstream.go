// Package upstream connects to servers through the user's own proxy: an HTTP proxy,
// in clear or in TLS, by CONNECT, or a SOCKS 5 proxy.
//
//	proxies, ignored, err := upstream.FromEnvironment(os.Getenv, ownAddress)
//	...
//	d := &upstream.Dialer{Proxies: proxies, Direct: new(net.Dialer).DialContext}
//	conn, err := d.Dial(ctx, proxies.For("https", "api.example:443"), "api.example:443", id)
//
// Errors that concern the proxy are *Error, which names the proxy without its
// password and says what to do.
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
	"strings"
	"syscall"
	"time"
)

// ViaHeader is the header field by which one unwire tells the next, in a request to
// it as a proxy, which instances of unwire the request has passed. No other server
// gets it.
const ViaHeader = "Unwire-Via"

// dialTimeout bounds how long a proxy may take to connect to a server. It is shorter
// than clients wait for TLS, so that they get the error.
const dialTimeout = 12 * time.Second

// ErrLoop says that a proxy leads back to where the connection came from.
var ErrLoop = errors.New("it leads back to this unwire")

// An Error is a failure that concerns the proxy.
type Error struct {
	// Proxy is its URL, without user and password.
	Proxy string

	// What failed, and what to do about it.
	What, Do string

	// Err is the cause, or nil.
	Err error
}

func (e *Error) Error() string {
	text := "upstream proxy " + e.Proxy + ": " + e.What
	if e.Do != "" {
		text += ": " + e.Do
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// A proxiedConn is a connection through a proxy, or to one that passes requests on.
type proxiedConn struct {
	net.Conn

	// proxy is its URL, without user and password.
	proxy string

	// head was read from the proxy behind its answer.
	head []byte
}

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

// CloseWrite closes one direction, if the connection to the proxy can.
func (c *proxiedConn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}

// CloseRead closes the other direction, if the connection to the proxy can.
func (c *proxiedConn) CloseRead() error {
	if h, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return h.CloseRead()
	}
	return nil
}

// ProxyOf names the proxy that a connection goes through, "" if there is none.
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
	Proxies *Proxies

	// Direct makes the TCP connections to proxies and, where no proxy is used, to
	// servers. It is required.
	Direct func(ctx context.Context, network, addr string) (net.Conn, error)

	// Roots are the CAs trusted for https proxies; nil means the system's.
	Roots *x509.CertPool
}

// Dial connects to addr through a proxy, or directly if proxy is nil. via names the
// instances of unwire that the connection has passed, this one included.
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
		return nil, d.refused(ctx, proxy, addr, err)
	}
	return conn, nil
}

// refused words why a proxy did not connect to addr.
func (d *Dialer) refused(ctx context.Context, proxy *url.URL, addr string, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return &Error{Name(proxy), "it did not answer in time whether it connects to " + addr, "look whether it works, and reaches that address", ctx.Err()}
	}
	return &Error{Name(proxy), fmt.Sprintf("it closed the connection when asked for %s (%v)", addr, err), kindHint(proxy), err}
}

// kindHint says what to do about a proxy that is of another kind, it seems.
func kindHint(proxy *url.URL) string {
	if speaksHTTP(proxy) {
		return "look whether it is an HTTP proxy: a SOCKS proxy is given as socks5h://" + proxy.Host + ", one that speaks TLS as https://" + proxy.Host
	}
	return "look whether it is a SOCKS 5 proxy: an HTTP proxy is given as http://" + proxy.Host
}

// DialProxy connects to a proxy that requests are sent to, in TLS if its URL says so.
//
// Errors: *Error.
func (d *Dialer) DialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	conn, err := d.connect(ctx, proxy)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (d *Dialer) connect(ctx context.Context, proxy *url.URL) (*proxiedConn, error) {
	raw, err := d.Direct(ctx, "tcp", proxy.Host)
	if err != nil {
		return nil, &Error{Name(proxy), "it cannot be reached: " + connectReason(err), "start it, or correct --upstream-proxy or the proxy variable (--upstream-proxy none: use no proxy)", err}
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

// tlsError words why the TLS with a proxy failed.
func tlsError(proxy *url.URL, err error) error {
	var untrusted *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted):
		return &Error{Name(proxy), fmt.Sprintf("its certificate is not trusted: %v", untrusted.Err), "give its CA with --upstream-ca, if you trust it", err}
	case errors.As(err, &notTLS):
		return &Error{Name(proxy), "it does not speak TLS", "an HTTP proxy in clear is given as http://" + proxy.Host, err}
	}
	return &Error{Name(proxy), fmt.Sprintf("TLS with it failed: %v", err), kindHint(proxy), err}
}

// connectReason is why a TCP connection failed, without the address.
func connectReason(err error) string {
	var code syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &code):
		return code.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	}
	return strings.TrimPrefix(err.Error(), "dial tcp ")
}
