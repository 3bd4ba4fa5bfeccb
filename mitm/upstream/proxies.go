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

// schemes are the kinds of proxies, each with its port where the URL has none.
var schemes = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// Proxies choose the proxy for a server. Nil chooses none.
type Proxies struct {
	choose func(*url.URL) (*url.URL, error)

	// all are the proxies that may be chosen.
	all []*url.URL
}

// Always chooses one proxy for every server, those of this machine too.
func Always(proxy *url.URL) *Proxies {
	return &Proxies{choose: func(*url.URL) (*url.URL, error) { return proxy, nil }, all: []*url.URL{proxy}}
}

// FromEnvironment chooses as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say, and ALL_PROXY
// where one of the first two is not set; the lower-case names count first. Servers of
// this machine are reached directly. A variable that names own, host:port of the
// listener that asks, is ignored, and returned by its name.
//
// Errors: a variable that is no proxy's URL.
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
		if isSame(u.Host, own) {
			ignored = append(ignored, name)
			return "", nil
		}
		p.all = append(p.all, u)
		return u.String(), nil
	}
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

func firstSet(getenv func(string) string, names []string) (name, value string) {
	for _, name = range names {
		if value = getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// isSame reports whether two addresses are of one listener on loopback.
func isSame(addr, own string) bool {
	host, port, err := net.SplitHostPort(addr)
	ownHost, ownPort, ownErr := net.SplitHostPort(own)
	if err != nil || ownErr != nil || port != ownPort {
		return false
	}
	return strings.EqualFold(host, ownHost) || host == "localhost" && net.ParseIP(ownHost).IsLoopback()
}

// Names reports whether the proxy of a URL is own, host:port of a listener.
func Names(proxy *url.URL, own string) bool { return isSame(proxy.Host, own) }

// For returns the proxy for a server, or nil if it is reached directly. The server has
// a scheme, http or https, and names, host:port each; if one of them is excepted, no
// proxy is used.
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

// At returns the HTTP proxy whose address is addr, or nil.
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

// Forwarder returns the proxy for a server that is spoken to in clear, if requests for
// it are sent to the proxy instead of through a tunnel, as HTTP proxies want it: many
// refuse CONNECT to any port but 443.
func (p *Proxies) Forwarder(addrs ...string) *url.URL {
	if u := p.For("http", addrs...); u != nil && speaksHTTP(u) {
		return u
	}
	return nil
}

func speaksHTTP(proxy *url.URL) bool { return proxy.Scheme == "http" || proxy.Scheme == "https" }

// Name is a proxy's URL without user and password.
func Name(proxy *url.URL) string { return proxy.Scheme + "://" + proxy.Host }

// Parse reads a proxy's URL: scheme, host and port, perhaps user:password. Without a
// scheme it is an HTTP proxy. The error never repeats the text, which may hold a
// password.
func Parse(s string) (*url.URL, error) {
	const form = "want a proxy such as http://host:3128, https://host, socks5://host:1080 or socks5h://host:1080"
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("it is no URL: " + form + "; in user and password, write @ as %40, : as %3A, / as %2F, % as %25")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	port, ok := schemes[u.Scheme]
	switch {
	case !ok:
		return nil, fmt.Errorf("unwire does not speak to %s proxies: %s", u.Scheme, form)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it has a path, which a proxy has not: " + form)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: net.JoinHostPort(u.Hostname(), port)}, nil
}
