// Package hosts decides by host and path what the proxy records. A Filter is built from the user's patterns;
// package mitm uses it for each connection and each request.
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

// A Filter selects the hosts whose traffic is recorded; other traffic is tunnelled. Patterns with a path select
// requests of a recorded host.
type Filter struct {
	// only and skip are glob patterns for hosts; only includes the hosts of onlyPaths.
	only, skip []string

	// onlyAll are the patterns of only that have no path.
	onlyAll []string

	// onlyPaths and skipPaths are the patterns that have a path.
	onlyPaths, skipPaths []pathPattern

	// mayIssueFor, if set, reports whether the CA may issue a certificate for a host.
	mayIssueFor func(host string) bool
}

// A pathPattern is a glob pattern for hosts and one for paths. Slashes in the pattern for paths are replaced by
// slashMark, so that * in path.Match also matches slashes.
type pathPattern struct {
	// host is a glob for host names.
	host string
	// path is a glob for paths, with slashMark instead of slashes.
	path string
}

// slashMark replaces slashes. It occurs in no URL.
const slashMark = "\x01"

// New returns a filter. Hosts that are not in only (if it is not empty) or that are in skip are not recorded,
// nor are hosts for which vouched returns false, because the CA may not issue certificates for them. vouched
// may be nil.
//
// Errors: if path.Match does not accept a pattern.
func New(only, skip []string, vouched func(host string) bool) (Filter, error) {
	f := Filter{mayIssueFor: vouched}

	// A pattern with a path selects requests; one without selects whole connections.
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

	// Check all patterns now, so that matching cannot fail later.
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

// splitPattern splits a pattern HOST[/PATH]. If it has no path, pattern is nil.
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

// HasPaths reports whether a pattern has a path. Without one, RecordsRequest is always true.
func (f Filter) HasPaths() bool { return len(f.onlyPaths) > 0 || len(f.skipPaths) > 0 }

// RecordsRequest reports whether a request with this path is recorded. addrs are the names of its host, for
// which RecordsHost must have returned true.
func (f Filter) RecordsRequest(requestPath string, addrs ...string) bool {
	if !f.HasPaths() {
		return true
	}
	marked := strings.ReplaceAll(requestPath, "/", slashMark)
	chosen := func(patterns []pathPattern) bool {
		return slices.ContainsFunc(patterns, func(p pathPattern) bool {
			// New has checked the pattern.
			ok, _ := path.Match(p.path, marked)
			return ok && slices.ContainsFunc(addrs, func(addr string) bool { return matchHost([]string{p.host}, addr) })
		})
	}
	if chosen(f.skipPaths) {
		return false
	}
	return len(f.only) == 0 || chosen(f.onlyPaths) ||
		slices.ContainsFunc(addrs, func(addr string) bool { return matchHost(f.onlyAll, addr) })
}

// RecordsHost reports whether the traffic of a host may be recorded. addrs are all names of the host, as host
// or host:port. Patterns are compared with both forms; * also matches dots.
func (f Filter) RecordsHost(addrs ...string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(addrs, func(addr string) bool { return matchHost(patterns, addr) })
	}
	return (len(f.only) == 0 || matches(f.only)) && !matches(f.skip) && f.caCovers(addrs)
}

// caCovers reports whether the CA may issue the certificate for a host with these names. The certificate
// contains a host name if one is known, and otherwise the IP address.
func (f Filter) caCovers(addrs []string) bool {
	if f.mayIssueFor == nil {
		return true
	}
	named, vouched := false, false
	for _, addr := range addrs {
		host := Name(addr)

		// Every known name must be permitted.
		if net.ParseIP(host) == nil {
			if named = true; !f.mayIssueFor(host) {
				return false
			}
		}
		vouched = vouched || f.mayIssueFor(host)
	}
	return named || vouched
}

// IsDecidedByAddress reports whether the result of RecordsHost for addr is final even if the TLS server name is
// not known yet. A connection to an IP address may turn out to be for a named host.
func (f Filter) IsDecidedByAddress(addr string) bool {
	if len(f.only) == 0 && len(f.skip) == 0 && f.mayIssueFor == nil {
		return true
	}
	return net.ParseIP(Name(addr)) == nil
}

// matchHost reports whether a pattern matches addr, with or without its port.
func matchHost(patterns []string, addr string) bool {
	addr = strings.ToLower(addr)
	host := Name(addr)
	for _, p := range patterns {
		for _, s := range []string{host, addr} {
			// New has checked the pattern.
			if ok, _ := path.Match(p, s); ok {
				return true
			}
		}
	}
	return false
}

// Name returns the host name of an address, with or without a port.
func Name(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return strings.TrimSuffix(host, ".")
	}
	return strings.TrimSuffix(strings.Trim(addr, "[]"), ".")
}
