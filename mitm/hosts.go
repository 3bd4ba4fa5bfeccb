package mitm

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
)

// A hostFilter says which hosts are recorded; the others are tunnelled as they are.
type hostFilter struct{ only, skip []string }

func newHostFilter(only, skip []string) (hostFilter, error) {
	f := hostFilter{lowerAll(only), lowerAll(skip)}
	for _, p := range slices.Concat(f.only, f.skip) {
		if _, err := path.Match(p, ""); err != nil {
			return f, fmt.Errorf("mitm: host pattern %q: %w", p, err)
		}
	}
	return f, nil
}

func lowerAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(s)
	}
	return out
}

// captured reports whether the traffic of a host is recorded, given all the
// names it goes by, host or host:port. A pattern is compared with the host and
// with host:port; its * also spans dots.
func (f hostFilter) captured(addrs ...string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(addrs, func(addr string) bool { return matchHost(patterns, addr) })
	}
	return (len(f.only) == 0 || matches(f.only)) && !matches(f.skip)
}

// decided reports whether captured needs no server name to be certain: a
// connection to an address may turn out to be for a host that has a name.
func (f hostFilter) decided(addr string) bool {
	if len(f.only) == 0 && len(f.skip) == 0 {
		return true
	}
	return net.ParseIP(hostOf(addr)) == nil
}

func matchHost(patterns []string, addr string) bool {
	addr = strings.ToLower(addr)
	host := hostOf(addr)
	for _, p := range patterns {
		for _, s := range []string{host, addr} {
			if ok, _ := path.Match(p, s); ok { // the pattern was checked
				return true
			}
		}
	}
	return false
}

// hostOf returns the host of host:port, or of a host alone.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return strings.TrimSuffix(host, ".")
	}
	return strings.TrimSuffix(strings.Trim(addr, "[]"), ".")
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
