package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// ErrRefused reports that unwire did not send a request because the policy or the pace does not allow
// it.
var ErrRefused = errors.New("unwire refused to send the request")

// CheckTarget returns nil if a request may be sent to u.
//
// Shape: loopback addresses and the name localhost are always allowed. Another host is allowed if live
// is set and allowed has it: as a name, as name:port, or as *.domain for all names below domain. Names
// are not resolved; only localhost counts as a loopback name.
// Errors: ErrRefused, with what is missing.
func CheckTarget(u *url.URL, live bool, allowed []string) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("replay: %w: %s is not an http or https URL", ErrRefused, u.Redacted())
	case host == "":
		return fmt.Errorf("replay: %w: %s has no host", ErrRefused, u.Redacted())
	case IsLoopback(host):
		return nil
	case !live:
		return fmt.Errorf("replay: %w: %s is not this machine; use --live", ErrRefused, host)
	case !isAllowed(host, portOf(u), allowed):
		return fmt.Errorf("replay: %w: --allow-host does not allow %s", ErrRefused, host)
	}
	return nil
}

// IsLoopback reports whether a host name or address, in lower case, denotes this machine.
func IsLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().WithZone("").IsLoopback()
}

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// isAllowed reports whether host and port match an entry of allowed: a name, name:port, or *.domain for all names below
// domain.
func isAllowed(host, port string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		a = strings.ToLower(strings.TrimSuffix(a, "."))
		if domain, ok := strings.CutPrefix(a, "*"); ok {
			return strings.HasPrefix(domain, ".") && len(host) > len(domain) && strings.HasSuffix(host, domain)
		}
		return a == host || a == net.JoinHostPort(host, port)
	})
}

// dialFunc opens a connection, like net.Dialer.DialContext.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// A guard opens connections, and checks the actual address of each one: a name may resolve to any
// address, and to a different one the next time.
type guard struct {
	// live allows addresses other than loopback.
	live bool
	// dial opens connections; nil means a net.Dialer.
	dial dialFunc
}

// DialContext is like net.Dialer's, but refuses addresses other than loopback unless live is set.
//
// Shape: without live, names are never looked up; localhost is 127.0.0.1, then ::1.
func (g guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := g.dial
	if dial == nil {
		dial = (&net.Dialer{Control: g.control}).DialContext
	}
	if g.live {
		return dial(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !IsLoopback(strings.ToLower(strings.TrimSuffix(host, "."))) {
		return nil, fmt.Errorf("%w: %s is not a loopback address", ErrRefused, address)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return dial(ctx, network, address)
	}
	conn, err := dial(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		if six, err6 := dial(ctx, network, net.JoinHostPort("::1", port)); err6 == nil {
			return six, nil
		}
	}
	return conn, err
}

// control is a net.Dialer's hook that is called before each socket connects. It refuses addresses that
// are not allowed.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	if g.live {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !ap.Addr().Unmap().WithZone("").IsLoopback() {
		return fmt.Errorf("%w: %s is not a loopback address", ErrRefused, address)
	}
	return nil
}
