package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// proxyVariables looks for proxies that are set already.
func (m Machine) proxyVariables(context.Context) []check {
	const name = "proxy variables"
	var all []check
	seen := make(map[string]bool)
	for _, v := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		value := m.Getenv(v)
		if value == "" || seen[value] {
			continue
		}
		seen[value] = true
		all = append(all, warn(name, fmt.Sprintf("%s is set to %s", v, withoutUser(value)),
			"a command run by capture gets unwire's proxy instead, which reaches servers through that one: if it should not, give capture --upstream-proxy none")...)
	}
	for _, v := range []string{"NO_PROXY", "no_proxy"} {
		if host := coversLoopback(m.Getenv(v)); host != "" {
			all = append(all, warn(name, fmt.Sprintf("%s has %s", v, host),
				"capture empties it for its command, and connects to what it names directly; a client that you start yourself does not use a proxy for local servers: unset it there")...)
			break
		}
	}
	if len(all) == 0 {
		return ok(name, "none is set")
	}
	return all
}

// withoutUser is a proxy's URL without what may be a password.
func withoutUser(proxy string) string {
	if u, err := url.Parse(proxy); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	if i := strings.LastIndexByte(proxy, '@'); i >= 0 {
		return proxy[i+1:]
	}
	return proxy
}

// coversLoopback returns the entry of a NO_PROXY list that local servers match.
func coversLoopback(list string) string {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		host, _, err := net.SplitHostPort(entry)
		if err != nil {
			host = entry
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		_, network, err := net.ParseCIDR(entry)
		switch {
		case entry == "*", strings.EqualFold(strings.TrimPrefix(host, "."), "localhost"), ip != nil && ip.IsLoopback(),
			err == nil && (network.Contains(net.IPv4(127, 0, 0, 1)) || network.Contains(net.IPv6loopback)):
			return entry
		}
	}
	return ""
}

// port binds a free port and connects to it.
func (m Machine) port(ctx context.Context) []check {
	const name = "loopback port"
	const do = "the proxy listens there: look at the limits of this sandbox or container, and at the firewall"
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return failed(name, err.Error(), do)
	}
	defer ln.Close()
	dialer := net.Dialer{Timeout: commandTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		return failed(name, err.Error(), do)
	}
	_ = conn.Close()
	return ok(name, "a free one can be bound and reached")
}
