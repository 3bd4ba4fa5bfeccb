package mitm

import (
	"net"
	"net/url"
	"strings"

	"unwire/mitm/hosts"
)

// A target identifies the server to which a connection's requests are sent.
type target struct {
	// scheme is "http" or "https".
	scheme string
	// addr is the host:port to connect to.
	addr string
	// sni is the server name that the client sent; "" if none.
	sni string

	// alpn is the ALPN protocol that is offered to the server for HTTP/1; "" means protoH1.
	alpn string

	// via lists the ids of the unwire proxies that the connection has passed through.
	via string
}

// host returns the name for which the server's certificate must be valid.
func (t target) host() string {
	if t.sni != "" {
		return t.sni
	}
	return hosts.Name(t.addr)
}

// hostPort returns the server as host:port, with the host name that the client uses.
func (t target) hostPort() string { return withPort(t.host(), portOf(t.addr)) }

// targetOf returns the target for a URL.
func targetOf(u *url.URL) target {
	if u.Scheme == "https" {
		return target{scheme: "https", addr: withPort(u.Host, "443"), sni: sniOf(u.Hostname())}
	}
	return target{scheme: "http", addr: withPort(u.Host, "80")}
}

// sniOf returns the TLS server name (SNI) for a host: "" for an IP address.
func sniOf(host string) string {
	if net.ParseIP(host) != nil {
		return ""
	}
	return host
}

// withPort appends a port to an address that has none.
func withPort(addr, port string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), port)
}

// portOf returns the port of an address host:port; 443 if it has none.
func portOf(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		return port
	}
	return "443"
}

// portFor returns the default port of a URL's scheme.
func portFor(u *url.URL) string {
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
