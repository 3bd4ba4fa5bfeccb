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

// maxAnswer bounds the head of a proxy's answer to CONNECT, in bytes.
const maxAnswer = 64 << 10

// connectHTTP asks an HTTP proxy for a tunnel to addr. What the proxy sends behind its
// answer stays to be read from conn.
//
// Errors: *Error where the proxy has answered.
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
		// An end, or a network error, is no answer at all.
		if errors.Is(err, io.ErrUnexpectedEOF) && r.Buffered() == 0 && limited.N == maxAnswer || isNetwork(err) {
			return err
		}
		return &Error{Name(proxy), "it does not answer as an HTTP proxy does", kindHint(proxy), err}
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return Refusal(proxy, addr, res)
	}
	if n := r.Buffered(); n > 0 {
		conn.head, err = r.Peek(n)
	}
	return err
}

// Authorization is the value of Proxy-Authorization for a proxy, "" if its URL has no
// user.
func Authorization(proxy *url.URL) string {
	u := proxy.User
	if u == nil {
		return ""
	}
	password, _ := u.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
}

func isNetwork(err error) bool {
	var network interface{ Timeout() bool }
	return errors.As(err, &network)
}

// Refusal is the error of a proxy's answer that is not the server's: to CONNECT, or to
// a request if IsRefusal.
func Refusal(proxy *url.URL, addr string, res *http.Response) *Error {
	// The standard's words, not the proxy's own.
	status := strings.TrimSpace(fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	e := &Error{Proxy: Name(proxy)}
	switch res.StatusCode {
	case http.StatusProxyAuthRequired:
		e.What, e.Do = authentication(proxy, res.Header.Values("Proxy-Authenticate"), status)
	case http.StatusForbidden:
		e.What = fmt.Sprintf("it does not allow connections to %s (%s)", addr, status)
		e.Do = "ask who runs it, or name the host in NO_PROXY if it can be reached directly"
	case http.StatusLoopDetected:
		e.What, e.Err = fmt.Sprintf("%v (%s)", ErrLoop, status), ErrLoop
		e.Do = "have the last of the two connect directly: give it --upstream-proxy none"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.What = fmt.Sprintf("it did not reach %s (%s)", addr, status)
		e.Do = "look whether that address is right and the server is running"
	default:
		e.What = fmt.Sprintf("it answered CONNECT %s with %s", addr, status)
		e.Do = kindHint(proxy)
	}
	return e
}

// IsRefusal reports whether the answer to a request that was sent to a proxy is the
// proxy's own.
func IsRefusal(res *http.Response) bool {
	return res.StatusCode == http.StatusProxyAuthRequired ||
		res.StatusCode == http.StatusLoopDetected && res.Header.Get(ViaHeader) != ""
}

// addUser says how to give a proxy a user. It is no URL: those are redacted.
func addUser(proxy *url.URL) string {
	return "add them to its URL, as in USER:PASSWORD@" + proxy.Host
}

// authentication words that a proxy wants another user than it was given.
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
		return fmt.Sprintf("it asks for authentication by %.60s, unwire has Basic (%s)", strings.Join(offered, ", "), status),
			"put a proxy in between that does it, such as cntlm or px"
	case proxy.User != nil:
		return fmt.Sprintf("it does not accept the user and password (%s)", status), "correct them"
	}
	return fmt.Sprintf("it asks for a user and password (%s)", status),
		addUser(proxy)
}
