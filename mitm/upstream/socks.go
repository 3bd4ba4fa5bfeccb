package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"unwire/mitm/socks"
)

// greetingTimeout limits the wait for a SOCKS proxy's response to the greeting. It is short, because the proxy
// can respond without connecting anywhere.
const greetingTimeout = 5 * time.Second

// connectSOCKS asks the SOCKS 5 proxy via, at the other end of conn, for a connection to addr. passed are the
// ids of unwire proxies to be sent. With the scheme socks5, the host name is resolved here; with socks5h, by
// the proxy.
func connectSOCKS(ctx context.Context, conn *proxiedConn, via *url.URL, addr, passed string) error {
	to := addr
	if via.Scheme == "socks5" {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		if net.ParseIP(host) == nil {
			found, err := net.DefaultResolver.LookupHost(ctx, host)
			if err != nil {
				return &Error{Name(via), "the host name " + host + " cannot be resolved on this machine", "let the proxy resolve names: socks5h://" + via.Host, err}
			}
			to = net.JoinHostPort(preferIPv4(found), port)
		}
	}

	// The user and the password come from the proxy's URL.
	var auth *proxy.Auth
	if u := via.User; u != nil {
		password, _ := u.Password()
		auth = &proxy.Auth{User: u.Username(), Password: password}
	}
	greeting := &greetingConn{Conn: conn.Conn, via: passed}
	greeting.deadline, _ = ctx.Deadline()
	d, err := proxy.SOCKS5("tcp", via.Host, auth, existingConn{greeting})
	if err != nil {
		return err
	}
	if _, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", to); err != nil {
		return socksError(via, addr, greeting.isUnwire, err)
	}
	return nil
}

// preferIPv4 returns the first IPv4 address in addrs, or the first address if there is none.
func preferIPv4(addrs []string) string {
	for _, a := range addrs {
		if ip := net.ParseIP(a); ip.To4() != nil {
			return a
		}
	}
	return addrs[0]
}

// socksError converts an error of the SOCKS library, which returns only texts. isUnwire means that the proxy is
// another unwire.
func socksError(via *url.URL, addr string, isUnwire bool, err error) error {
	if errors.As(err, new(*greetingError)) {
		return &Error{Name(via), "the proxy does not answer like a SOCKS 5 proxy", kindHint(via), err}
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Err == nil || isNetwork(op.Err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}

	// The library reports failures only as text, which is mapped to a cause and a remedy.
	e := &Error{Proxy: Name(via), Err: err}
	text := op.Err.Error()
	reply, isReply := strings.CutPrefix(text, "unknown error ")
	switch {
	case strings.Contains(text, "authentication failed"):
		e.What, e.Remedy = "the proxy rejected the user and password", "correct the user and password in the proxy's URL"
	case strings.Contains(text, "no acceptable authentication"):
		e.What, e.Remedy = "the proxy requires a user and password", addUser(via)
	case isReply && isUnwire && strings.Contains(reply, "not allowed"):
		e.What, e.Err = ErrLoop.Error(), ErrLoop
		e.Remedy = "start the second of the two proxies with --upstream-proxy none"
	case isReply && strings.Contains(reply, "not allowed"):
		e.What = "the proxy does not allow connections to " + addr
		e.Remedy = "ask the administrator of the proxy, or name the host in NO_PROXY if you can reach it directly"
	case isReply:
		e.What = "the proxy could not connect to " + addr + " (" + reply + ")"
		e.Remedy = "check the address, and that the server is running"
	default:
		e.What, e.Remedy = "the proxy does not answer like a SOCKS 5 proxy", kindHint(via)
	}
	return e
}

// An existingConn passes an existing connection to the SOCKS library, in place of dialing one.
type existingConn struct {
	// conn is the connection that Dial returns.
	conn net.Conn
}

// Dial returns the connection.
func (f existingConn) Dial(string, string) (net.Conn, error) { return f.conn, nil }

// DialContext returns the connection.
func (f existingConn) DialContext(context.Context, string, string) (net.Conn, error) {
	return f.conn, nil
}

// A greetingError means that the SOCKS proxy did not respond to the greeting.
type greetingError struct {
	// err is the error of reading the response.
	err error
}

// Error returns the text of the underlying error.
func (e *greetingError) Error() string { return e.err.Error() }

// A greetingConn is a connection on which a SOCKS client's greeting also offers the method socks.MethodVia. If
// the proxy selects it, greetingConn sends the ids in via, and the SOCKS library sees the selection of no
// authentication instead.
type greetingConn struct {
	// Conn is the connection to the SOCKS proxy.
	net.Conn

	// via are the ids, separated by commas, of the unwire proxies that the connection has passed through; they are
	// sent to a SOCKS proxy that is itself unwire.
	via string
	// greeted means that the client's greeting was sent.
	greeted bool

	// deadline is the deadline for the whole SOCKS handshake.
	deadline time.Time

	// answered means that the proxy's response to the greeting was read. isUnwire means that the proxy
	// selected socks.MethodVia, and so is another unwire.
	answered, isUnwire bool
}

// Write sends bytes of the SOCKS client; the first call changes the greeting.
func (c *greetingConn) Write(p []byte) (int, error) {
	if c.greeted || c.via == "" || len(c.via) > socks.MaxVia || len(p) < 2 || len(p) != 2+int(p[1]) {
		c.greeted = true
		return c.Conn.Write(p)
	}
	c.greeted = true
	longer := append([]byte{p[0], p[1] + 1}, p[2:]...)
	if _, err := c.Conn.Write(append(longer, socks.MethodVia)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Read returns bytes of the proxy; the first call handles the response to the greeting.
func (c *greetingConn) Read(p []byte) (int, error) {
	if c.answered || len(p) != 2 {
		return c.Conn.Read(p)
	}
	c.answered = true
	_ = c.Conn.SetReadDeadline(time.Now().Add(greetingTimeout))
	n, err := io.ReadFull(c.Conn, p)
	_ = c.Conn.SetReadDeadline(c.deadline)
	if err != nil {
		return n, &greetingError{err}
	}

	// The proxy is not an unwire, or an old one.
	if p[1] != socks.MethodVia {
		return n, err
	}
	c.isUnwire, p[1] = true, 0
	_, err = c.Conn.Write(append([]byte{byte(len(c.via))}, c.via...))
	return n, err
}
