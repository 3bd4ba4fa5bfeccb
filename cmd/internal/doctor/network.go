package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// proxyVariables checks whether the environment already has proxy settings, which affect recording.
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
			"unwire's proxy forwards connections to this proxy; to connect to servers directly, use 'unwire capture --upstream-proxy none'")...)
	}
	for _, v := range []string{"NO_PROXY", "no_proxy"} {
		if host := coversLoopback(m.Getenv(v)); host != "" {
			all = append(all, warn(name, fmt.Sprintf("%s contains %s", v, host),
				"capture clears the variable for the command that it runs. If you start a client yourself, unset the variable: otherwise the client does not use the proxy for local servers")...)
			break
		}
	}
	if len(all) == 0 {
		return ok(name, "none set")
	}
	return all
}

// withoutUser returns a proxy's URL without user name and password.
func withoutUser(proxy string) string {
	if u, err := url.Parse(proxy); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	if i := strings.LastIndexByte(proxy, '@'); i >= 0 {
		return proxy[i+1:]
	}
	return proxy
}

// coversLoopback returns the first entry of a NO_PROXY list that excludes local servers from the proxy;
// "" if there is none.
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

// port checks that a local port can be opened and connected to.
func (m Machine) port(ctx context.Context) []check {
	const name = "loopback port"
	const do = "unwire's proxy needs a loopback port: check the limits of this sandbox or container, and the firewall"
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
	return ok(name, "can listen and connect")
}
