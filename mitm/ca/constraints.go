package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// constraints are the hosts for which a CA may issue certificates. The zero value means all hosts.
type constraints struct {
	// names are the host names (including their subdomains) for which the CA may sign certificates.
	names []string

	// addresses are the IP addresses for which the CA may sign certificates.
	addresses []*net.IPNet
}

// ErrHost is the error for a string that is neither a host name nor an IP address.
var ErrHost = errors.New("the host must be a host name or an IP address")

// hostName matches a host name in lower case.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
})

// noName is a reserved name that no host has. It is the only permitted name of a CA that is limited to IP
// addresses.
const noName = "unwire.invalid"

// newConstraints parses hosts: names, which may begin with "*.", and IP addresses.
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
		if len(name) > maxHostLength || !hostName().MatchString(name) {
			return c, fmt.Errorf("%w: %.60q", ErrHost, host)
		}
		c.names = append(c.names, name)
	}
	return c, nil
}

// constraintsOf returns the name constraints in a CA's certificate.
func constraintsOf(cert *x509.Certificate) constraints {
	c := constraints{names: slices.Clone(cert.PermittedDNSDomains), addresses: cert.PermittedIPRanges}
	c.names = slices.DeleteFunc(c.names, func(name string) bool { return name == noName })
	return c
}

// isForAll reports whether there are no constraints.
func (c constraints) isForAll() bool { return len(c.names) == 0 && len(c.addresses) == 0 }

// apply adds the constraints to a template for a CA's certificate. It constrains both host names and IP
// addresses, because a kind without constraints would be permitted completely.
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

// permits reports whether the constraints permit a host, given as a name or an IP address.
func (c constraints) permits(host string) bool {
	if c.isForAll() {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(c.addresses, func(n *net.IPNet) bool { return n.Contains(ip) })
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(c.names, func(name string) bool { return host == name || strings.HasSuffix(host, "."+name) })
}

// Hosts returns the names and IP addresses to which the CA is limited; none if it is not limited.
func (a *Authority) Hosts() []string {
	c := constraintsOf(a.Certificate)
	hosts := c.names
	for _, n := range c.addresses {
		hosts = append(hosts, n.IP.String())
	}
	return hosts
}

// MayIssueFor reports whether the CA's constraints permit a host, so that programs that trust the CA accept its
// certificate for that host.
func (a *Authority) MayIssueFor(host string) bool { return constraintsOf(a.Certificate).permits(host) }
