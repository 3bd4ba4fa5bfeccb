package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// schemes maps the URL schemes of supported kinds of proxies to their default ports.
var schemes = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// A Proxies selects the user's proxy for each server. A nil *Proxies selects none.
type Proxies struct {
	// choose returns the proxy for a server's URL, or nil.
	choose func(*url.URL) (*url.URL, error)

	// all are the proxies from which one is chosen for each server.
	all []*url.URL
}

// Always returns Proxies that use one proxy for all servers, including those on this machine.
func Always(proxy *url.URL) *Proxies {
	return &Proxies{choose: func(*url.URL) (*url.URL, error) { return proxy, nil }, all: []*url.URL{proxy}}
}

// FromEnvironment returns Proxies that select by the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. ALL_PROXY
// replaces the first two if they are not set; lower-case names take precedence. Servers on this machine are
// reached directly. A variable that names own, the host:port of our own listener, is ignored, and its name is
// returned.
//
// Errors: if a variable is not a proxy's URL.
//
// Source: golang.org/x/net/http/httpproxy has the rules of NO_PROXY.
func FromEnvironment(getenv func(string) string, own string) (p *Proxies, ignored []string, err error) {
	p = new(Proxies)
	use := func(names ...string) (string, error) {
		name, value := firstSet(getenv, names)
		if value == "" || slices.Contains(ignored, name) {
			return "", nil
		}
		u, err := Parse(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}

		// A proxy that is this process itself would forward in a loop.
		if isSame(u.Host, own) {
			ignored = append(ignored, name)
			return "", nil
		}
		p.all = append(p.all, u)
		return u.String(), nil
	}

	// The library has the rules of NO_PROXY, so it gets the result.
	var c httpproxy.Config
	if c.HTTPSProxy, err = use("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"); err != nil {
		return nil, nil, err
	}
	if c.HTTPProxy, err = use("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"); err != nil {
		return nil, nil, err
	}
	_, c.NoProxy = firstSet(getenv, []string{"no_proxy", "NO_PROXY"})
	if len(p.all) == 0 {
		return nil, ignored, nil
	}
	p.choose = c.ProxyFunc()
	return p, ignored, nil
}

// firstSet returns the first of the variables that is set, and its value.
func firstSet(getenv func(string) string, names []string) (name, value string) {
	for _, name = range names {
		if value = getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// isSame reports whether two addresses (host:port) refer to the same listener on loopback.
func isSame(addr, own string) bool {
	host, port, err := net.SplitHostPort(addr)
	ownHost, ownPort, ownErr := net.SplitHostPort(own)
	if err != nil || ownErr != nil || port != ownPort {
		return false
	}
	return strings.EqualFold(host, ownHost) || host == "localhost" && net.ParseIP(ownHost).IsLoopback()
}

// IsListener reports whether a proxy's URL refers to own, the host:port of a listener.
func IsListener(proxy *url.URL, own string) bool { return isSame(proxy.Host, own) }

// For returns the proxy for a server, or nil if it is reached directly. The server has a scheme, http or https,
// and one or more names as host:port. If NO_PROXY excludes one of them, no proxy is used.
func (p *Proxies) For(scheme string, addrs ...string) *url.URL {
	if p == nil {
		return nil
	}
	var proxy *url.URL
	for _, addr := range addrs {
		chosen, err := p.choose(&url.URL{Scheme: scheme, Host: addr})
		if err != nil || chosen == nil {
			return nil
		}
		proxy = chosen
	}
	return proxy
}

// At returns the HTTP proxy with the address addr (host:port), or nil.
func (p *Proxies) At(addr string) *url.URL {
	if p == nil {
		return nil
	}
	for _, u := range p.all {
		if speaksHTTP(u) && u.Host == addr {
			return u
		}
	}
	return nil
}

// Forwarder returns the proxy for a cleartext server with these addresses if requests must be sent to the proxy
// instead of through a tunnel: many HTTP proxies refuse CONNECT to ports other than 443. Otherwise it returns
// nil.
func (p *Proxies) Forwarder(addrs ...string) *url.URL {
	if u := p.For("http", addrs...); u != nil && speaksHTTP(u) {
		return u
	}
	return nil
}

// speaksHTTP reports whether a proxy is an HTTP proxy, with or without TLS.
func speaksHTTP(proxy *url.URL) bool { return proxy.Scheme == "http" || proxy.Scheme == "https" }

// Name returns a proxy's URL without user name and password.
func Name(proxy *url.URL) string { return proxy.Scheme + "://" + proxy.Host }

// Parse parses a proxy's URL: scheme, host, port, and optionally user:password. The default scheme is http. The
// error never contains the text, which may include a password.
func Parse(s string) (*url.URL, error) {
	const form = "use a proxy such as http://host:3128, https://host, socks5://host:1080 or socks5h://host:1080"
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("the proxy must be a URL: " + form + "; in user and password, write @ as %40, : as %3A, / as %2F, % as %25")
	}
	u.Scheme = strings.ToLower(u.Scheme)

	// Unknown schemes must not be mistaken for HTTP.
	port, ok := schemes[u.Scheme]
	switch {
	case !ok:
		return nil, fmt.Errorf("unwire does not support %s proxies: %s", u.Scheme, form)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("a proxy URL must not have a path: " + form)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: net.JoinHostPort(u.Hostname(), port)}, nil
}
