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

// ErrRefused is wrapped where a target is not one that we may send to.
var ErrRefused = errors.New("refused")

// CheckTarget says whether a request may be sent to u.
//
// Shape: loopback addresses and the name localhost always may. Another host may
// where live is set and allowed has it: as a name, as name:port, or as *.domain
// for every name below domain. No name is resolved: of a name that a resolver
// would answer with a loopback address, localhost excepted, nothing is known.
// Errors: ErrRefused, with what is missing.
func CheckTarget(u *url.URL, live bool, allowed []string) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("replay: %w: %s is no http or https URL", ErrRefused, u.Redacted())
	case host == "":
		return fmt.Errorf("replay: %w: %s has no host", ErrRefused, u.Redacted())
	case IsLoopback(host):
		return nil
	case !live:
		return fmt.Errorf("replay: %w: %s is not this machine, and --live is not given", ErrRefused, host)
	case !isAllowed(host, portOf(u), allowed):
		return fmt.Errorf("replay: %w: %s is not among the allowed hosts", ErrRefused, host)
	}
	return nil
}

// IsLoopback reports whether a host, in lower case, is this machine by its name
// or address.
func IsLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().WithZone("").IsLoopback()
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func isAllowed(host, port string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		a = strings.ToLower(strings.TrimSuffix(a, "."))
		if domain, ok := strings.CutPrefix(a, "*"); ok {
			return strings.HasPrefix(domain, ".") && len(host) > len(domain) && strings.HasSuffix(host, domain)
		}
		return a == host || a == net.JoinHostPort(host, port)
	})
}

// dialFunc makes a connection, as net.Dialer.DialContext does.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// A guard dials, and looks at the address that a connection really goes to: a
// name may resolve to anything, and to something else the next time.
type guard struct {
	live bool
	// nil: a plain dialer
	dial dialFunc
}

// DialContext is a net.Dialer's, refusing what is not loopback unless live.
//
// Shape: without live a name is never looked up; localhost is 127.0.0.1, else ::1.
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

// control runs on a socket before it connects.
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
