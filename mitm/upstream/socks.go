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

// greetingTimeout bounds how long a proxy may take to answer the greeting, for which it
// needs nobody else.
const greetingTimeout = 5 * time.Second

// connectSOCKS asks a SOCKS 5 proxy for a connection to addr. With socks5 the name is
// looked up here, with socks5h by the proxy.
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
				return &Error{Name(via), "the name " + host + " is not known here", "have the proxy look it up: socks5h://" + via.Host, err}
			}
			to = net.JoinHostPort(preferIPv4(found), port)
		}
	}
	var auth *proxy.Auth
	if u := via.User; u != nil {
		password, _ := u.Password()
		auth = &proxy.Auth{User: u.Username(), Password: password}
	}
	greeting := &greetingConn{Conn: conn.Conn, via: passed}
	greeting.deadline, _ = ctx.Deadline()
	d, err := proxy.SOCKS5("tcp", via.Host, auth, forward{greeting})
	if err != nil {
		return err
	}
	if _, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", to); err != nil {
		return socksError(via, addr, greeting.chosen, err)
	}
	return nil
}

func preferIPv4(addrs []string) string {
	for _, a := range addrs {
		if ip := net.ParseIP(a); ip.To4() != nil {
			return a
		}
	}
	return addrs[0]
}

// socksError words why a SOCKS proxy did not connect. The library has texts only.
func socksError(via *url.URL, addr string, isUnwire bool, err error) error {
	if errors.As(err, new(*greetingError)) {
		return &Error{Name(via), "it does not answer as a SOCKS 5 proxy does", kindHint(via), err}
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Err == nil || isNetwork(op.Err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	e := &Error{Proxy: Name(via), Err: err}
	text := op.Err.Error()
	reply, isReply := strings.CutPrefix(text, "unknown error ")
	switch {
	case strings.Contains(text, "authentication failed"):
		e.What, e.Do = "it does not accept the user and password", "correct them"
	case strings.Contains(text, "no acceptable authentication"):
		e.What, e.Do = "it asks for a user and password", addUser(via)
	case isReply && isUnwire && strings.Contains(reply, "not allowed"):
		e.What, e.Err = ErrLoop.Error(), ErrLoop
		e.Do = "have the last of the two connect directly: give it --upstream-proxy none"
	case isReply && strings.Contains(reply, "not allowed"):
		e.What = "it does not allow connections to " + addr
		e.Do = "ask who runs it, or name the host in NO_PROXY if it can be reached directly"
	case isReply:
		e.What = "it did not reach " + addr + " (" + reply + ")"
		e.Do = "look whether that address is right and the server is running"
	default:
		e.What, e.Do = "it does not answer as a SOCKS 5 proxy does", kindHint(via)
	}
	return e
}

// forward hands a connection that exists to the SOCKS client.
type forward struct{ conn net.Conn }

func (f forward) Dial(string, string) (net.Conn, error) { return f.conn, nil }

func (f forward) DialContext(context.Context, string, string) (net.Conn, error) { return f.conn, nil }

// A greetingError says that a proxy did not answer the greeting.
type greetingError struct{ err error }

func (e *greetingError) Error() string { return e.err.Error() }

// A greetingConn adds the method socks.MethodVia to the greeting of a SOCKS client, and
// answers it, if the proxy chooses that, as if no authentication was required.
type greetingConn struct {
	net.Conn
	via     string
	greeted bool

	// deadline is that of the whole dialogue.
	deadline time.Time

	// answered says that the answer to the greeting was read, chosen that it was
	// socks.MethodVia: the proxy is another unwire.
	answered, chosen bool
}

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
	if p[1] != socks.MethodVia {
		return n, err
	}
	c.chosen, p[1] = true, 0
	_, err = c.Conn.Write(append([]byte{byte(len(c.via))}, c.via...))
	return n, err
}
