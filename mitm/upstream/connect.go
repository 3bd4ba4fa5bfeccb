package upstream

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer limits the head of an HTTP proxy's response to CONNECT, in bytes.
const maxAnswer = 64 << 10

// connectHTTP asks the HTTP proxy at the other end of conn for a tunnel to addr. via are the ids of unwire
// proxies to be sent. Bytes that follow the response can be read from conn.
//
// Errors: *Error if the proxy has responded.
func connectHTTP(conn *proxiedConn, proxy *url.URL, addr, via string) error {
	req := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr,
		Header: http.Header{"User-Agent": {"unwire"}},
	}
	if via != "" {
		req.Header.Set(ViaHeader, via)
	}
	if user := Authorization(proxy); user != "" {
		req.Header.Set("Proxy-Authorization", user)
	}
	if err := req.Write(conn.Conn); err != nil {
		return err
	}
	limited := &io.LimitedReader{R: conn.Conn, N: maxAnswer}
	r := bufio.NewReader(limited)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		// The proxy closed the connection or the network failed: there is no response.
		if errors.Is(err, io.ErrUnexpectedEOF) && r.Buffered() == 0 && limited.N == maxAnswer || isNetwork(err) {
			return err
		}
		return &Error{Name(proxy), "the proxy does not answer like an HTTP proxy", kindHint(proxy), err}
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return Refusal(proxy, addr, res)
	}

	// Keep what the server has sent through the tunnel already.
	if n := r.Buffered(); n > 0 {
		conn.head, err = r.Peek(n)
	}
	return err
}

// Authorization returns the value of the Proxy-Authorization header for a proxy; "" if its URL has no user.
func Authorization(proxy *url.URL) string {
	u := proxy.User
	if u == nil {
		return ""
	}
	password, _ := u.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
}

// isNetwork reports whether an error is one of the network, rather than a response of the proxy.
func isNetwork(err error) bool {
	var network interface{ Timeout() bool }
	return errors.As(err, &network)
}

// Refusal returns the error that describes a proxy's own response: to CONNECT, or to a forwarded request for
// which IsRefusal is true.
func Refusal(proxy *url.URL, addr string, res *http.Response) *Error {
	// Use the standard text of the status, not the proxy's.
	status := strings.TrimSpace(fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	e := &Error{Proxy: Name(proxy)}
	switch res.StatusCode {
	case http.StatusProxyAuthRequired:
		e.What, e.Remedy = authentication(proxy, res.Header.Values("Proxy-Authenticate"), status)
	case http.StatusForbidden:
		e.What = fmt.Sprintf("the proxy does not allow connections to %s (%s)", addr, status)
		e.Remedy = "ask the administrator of the proxy, or name the host in NO_PROXY if you can reach it directly"
	case http.StatusLoopDetected:
		e.What, e.Err = fmt.Sprintf("%v (%s)", ErrLoop, status), ErrLoop
		e.Remedy = "start the second of the two proxies with --upstream-proxy none"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.What = fmt.Sprintf("the proxy could not connect to %s (%s)", addr, status)
		e.Remedy = "check the address, and that the server is running"
	default:
		e.What = fmt.Sprintf("the proxy answered CONNECT %s with %s", addr, status)
		e.Remedy = kindHint(proxy)
	}
	return e
}

// IsRefusal reports whether the response to a request that a proxy forwards comes from the proxy itself.
func IsRefusal(res *http.Response) bool {
	return res.StatusCode == http.StatusProxyAuthRequired ||
		res.StatusCode == http.StatusLoopDetected && res.Header.Get(ViaHeader) != ""
}

// addUser returns a hint for the user on how to specify a proxy's user name and password. It contains no URL,
// because URLs are redacted.
func addUser(proxy *url.URL) string {
	return "add them to the proxy's URL, as in USER:PASSWORD@" + proxy.Host
}

// authentication describes why a proxy did not accept the user, and what to do about it. challenges are the
// values of Proxy-Authenticate.
func authentication(proxy *url.URL, challenges []string, status string) (what, do string) {
	var offered []string
	for _, c := range challenges {
		name, _, _ := strings.Cut(strings.TrimSpace(c), " ")
		if strings.EqualFold(name, "basic") {
			offered = nil
			break
		}
		offered = append(offered, name)
	}
	switch {
	case len(offered) > 0:
		return fmt.Sprintf("the proxy requires %.60s authentication, but unwire supports only Basic (%s)", strings.Join(offered, ", "), status),
			"run a proxy in between that supports it, such as cntlm or px"
	case proxy.User != nil:
		return fmt.Sprintf("the proxy rejected the user and password (%s)", status), "correct the user and password in the proxy's URL"
	}
	return fmt.Sprintf("the proxy requires a user and password (%s)", status),
		addUser(proxy)
}
