package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
)

// constraints are the hosts that a CA vouches for. The zero value is for all.
type constraints struct {
	names     []string // and all below them
	addresses []*net.IPNet
}

// ErrHost is the error for a host that a CA cannot be made for.
var ErrHost = errors.New("neither a host name nor an IP address")

var hostName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// noName is a name that no host has: a CA for addresses alone vouches for it.
const noName = "unwire.invalid"

// newConstraints reads hosts: names, which may begin with "*.", and IP addresses.
func newConstraints(hosts []string) (c constraints, err error) {
	for _, host := range hosts {
		name := strings.TrimPrefix(strings.ToLower(strings.TrimSuffix(host, ".")), "*.")
		if ip := net.ParseIP(name); ip != nil {
			if v4 := ip.To4(); v4 != nil {
				ip = v4
			}
			c.addresses = append(c.addresses, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
			continue
		}
		if len(name) > maxHostLength || !hostName.MatchString(name) {
			return c, fmt.Errorf("%w: %.60q", ErrHost, host)
		}
		c.names = append(c.names, name)
	}
	return c, nil
}

// constraintsOf are those of a certificate.
func constraintsOf(cert *x509.Certificate) constraints {
	c := constraints{names: slices.Clone(cert.PermittedDNSDomains), addresses: cert.PermittedIPRanges}
	c.names = slices.DeleteFunc(c.names, func(name string) bool { return name == noName })
	return c
}

func (c constraints) isForAll() bool { return len(c.names) == 0 && len(c.addresses) == 0 }

// apply puts the constraints into a CA's certificate. A kind of name that nothing is said
// of would be allowed, so both kinds are said.
func (c constraints) apply(cert *x509.Certificate) {
	if c.isForAll() {
		return
	}
	cert.PermittedDNSDomainsCritical = true
	cert.PermittedDNSDomains, cert.PermittedIPRanges = c.names, c.addresses
	if len(c.names) == 0 {
		cert.PermittedDNSDomains = []string{noName}
	}
	if len(c.addresses) == 0 {
		cert.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
}

// has reports whether the constraints allow a host, a name or an IP address.
func (c constraints) has(host string) bool {
	if c.isForAll() {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(c.addresses, func(n *net.IPNet) bool { return n.Contains(ip) })
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(c.names, func(name string) bool { return host == name || strings.HasSuffix(host, "."+name) })
}

// Hosts are the names and IP addresses that the CA vouches for; none if it is for all.
func (a *Authority) Hosts() []string {
	c := constraintsOf(a.Certificate)
	hosts := c.names
	for _, n := range c.addresses {
		hosts = append(hosts, n.IP.String())
	}
	return hosts
}

// VouchesFor reports whether a program that trusts the CA accepts its certificate for a
// host.
func (a *Authority) VouchesFor(host string) bool { return constraintsOf(a.Certificate).has(host) }
