// Package hosts decides by host and path what the proxy records. A Filter is made of
// the user's patterns; package mitm asks it for each connection and each request.
//
//	f, err := hosts.New(only, skip, nil)
//	...
//	if f.RecordsHost("api.example.com:443") { … }
package hosts

import (
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
)

// A Filter says which hosts are recorded; the others are tunnelled as they
// are. Patterns with a path choose among the requests of a recorded host.
type Filter struct {
	// only and skip are patterns for hosts; only has the hosts of onlyPaths too.
	only, skip []string

	// onlyAll are the patterns of only without a path.
	onlyAll []string

	onlyPaths, skipPaths []pathPattern

	// vouched, if set, reports whether the CA's certificate for a host is accepted.
	vouched func(host string) bool
}

// A pathPattern is a glob for hosts, as it is in Filter, and one for paths
// whose slashes are marks, which path.Match lets a * span.
type pathPattern struct{ host, path string }

// slashMark stands for a slash: no URL has it in its path.
const slashMark = "\x01"

// New makes a filter of patterns: hosts that are not in only (if it has any) or that are
// in skip are not recorded, nor is one whose certificate is not accepted, of which vouched
// reports. Nil vouched accepts all.
//
// Errors: a pattern that path.Match does not accept.
func New(only, skip []string, vouched func(host string) bool) (Filter, error) {
	f := Filter{vouched: vouched}
	for _, p := range only {
		host, pattern := splitPattern(p)
		f.only = append(f.only, host)
		if pattern == nil {
			f.onlyAll = append(f.onlyAll, host)
		} else {
			f.onlyPaths = append(f.onlyPaths, *pattern)
		}
	}
	for _, p := range skip {
		host, pattern := splitPattern(p)
		if pattern == nil {
			f.skip = append(f.skip, host)
		} else {
			f.skipPaths = append(f.skipPaths, *pattern)
		}
	}
	for _, p := range slices.Concat(only, skip) {
		host, pattern := splitPattern(p)
		_, err := path.Match(host, "")
		if pattern != nil {
			_, pathErr := path.Match(pattern.path, "")
			err = errors.Join(err, pathErr)
		}
		if err != nil {
			return f, fmt.Errorf("host pattern %q: %w", p, err)
		}
	}
	return f, nil
}

// splitPattern takes a pattern apart; one of a host alone has no pattern for paths.
func splitPattern(p string) (host string, pattern *pathPattern) {
	host, rest, found := strings.Cut(p, "/")
	if host = strings.ToLower(host); host == "" {
		host = "*"
	}
	if !found {
		return host, nil
	}
	return host, &pathPattern{host, strings.ReplaceAll("/"+rest, "/", slashMark)}
}

// RecordsRequest reports whether a request is recorded, given the names of its host,
// which RecordsHost has accepted.
func (f Filter) RecordsRequest(requestPath string, addrs ...string) bool {
	if len(f.onlyPaths) == 0 && len(f.skipPaths) == 0 {
		return true
	}
	marked := strings.ReplaceAll(requestPath, "/", slashMark)
	chosen := func(patterns []pathPattern) bool {
		return slices.ContainsFunc(patterns, func(p pathPattern) bool {
			ok, _ := path.Match(p.path, marked) // the pattern was checked
			return ok && slices.ContainsFunc(addrs, func(addr string) bool { return matchHost([]string{p.host}, addr) })
		})
	}
	if chosen(f.skipPaths) {
		return false
	}
	return len(f.only) == 0 || chosen(f.onlyPaths) ||
		slices.ContainsFunc(addrs, func(addr string) bool { return matchHost(f.onlyAll, addr) })
}

// RecordsHost reports whether the traffic of a host is recorded, given all its names,
// host or host:port. A pattern is compared with the host and
// with host:port; its * also spans dots.
func (f Filter) RecordsHost(addrs ...string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(addrs, func(addr string) bool { return matchHost(patterns, addr) })
	}
	return (len(f.only) == 0 || matches(f.only)) && !matches(f.skip) && f.isVouched(addrs)
}

// isVouched reports whether the CA vouches for a host, given all its names: its
// certificate is for a name where there is one, else for the IP address.
func (f Filter) isVouched(addrs []string) bool {
	if f.vouched == nil {
		return true
	}
	named, vouched := false, false
	for _, addr := range addrs {
		host := Name(addr)
		if net.ParseIP(host) == nil {
			if named = true; !f.vouched(host) {
				return false
			}
		}
		vouched = vouched || f.vouched(host)
	}
	return named || vouched
}

// IsDecidedByAddress reports whether RecordsHost needs no server name to be certain: a
// connection to an IP address may turn out to be for a host that has a name.
func (f Filter) IsDecidedByAddress(addr string) bool {
	if len(f.only) == 0 && len(f.skip) == 0 && f.vouched == nil {
		return true
	}
	return net.ParseIP(Name(addr)) == nil
}

func matchHost(patterns []string, addr string) bool {
	addr = strings.ToLower(addr)
	host := Name(addr)
	for _, p := range patterns {
		for _, s := range []string{host, addr} {
			if ok, _ := path.Match(p, s); ok { // the pattern was checked
				return true
			}
		}
	}
	return false
}

// Name returns the host of host:port, or of a host alone.
func Name(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return strings.TrimSuffix(host, ".")
	}
	return strings.TrimSuffix(strings.Trim(addr, "[]"), ".")
}
