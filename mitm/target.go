package mitm

import (
	"net"
	"net/url"
	"strings"

	"unwire/mitm/hosts"
)

// A target is where a connection's requests go.
type target struct {
	scheme string // "http" or "https"
	addr   string // host:port to dial
	sni    string // the client's server name, "" if it sent none

	// alpn is offered to the server for HTTP/1; "" is protoH1.
	alpn string

	// via names the instances of unwire that the client's connection has passed.
	via string
}

// host is the name that the server's certificate must be for.
func (t target) host() string {
	if t.sni != "" {
		return t.sni
	}
	return hosts.Name(t.addr)
}

// shown is the server as host:port, by the name that the client calls it.
func (t target) shown() string { return withPort(t.host(), portOf(t.addr)) }

// targetOf is where the requests for a URL go.
func targetOf(u *url.URL) target {
	if u.Scheme == "https" {
		return target{scheme: "https", addr: withPort(u.Host, "443"), sni: sniOf(u.Hostname())}
	}
	return target{scheme: "http", addr: withPort(u.Host, "80")}
}

// sniOf is the server name sent for a host: none for an address.
func sniOf(host string) string {
	if net.ParseIP(host) != nil {
		return ""
	}
	return host
}

// withPort adds the port that a scheme implies.
func withPort(addr, port string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), port)
}

// portOf returns the port of host:port, or that of HTTPS.
func portOf(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		return port
	}
	return "443"
}

func portFor(u *url.URL) string {
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
