// Package outbound decides what may leave this machine. A Policy says which
// servers may be asked, over which transport and how often; a Journal names each
// request and what came of it; a Progress tells a request that was not sent from
// one that got no answer.
//
//	if err := outbound.CheckTarget(u, policy.Live, policy.AllowHosts); err != nil {
//		return err
//	}
//	resp, err := outbound.New(u.Scheme, "2", false, true, policy).RoundTrip(req)
//
// CheckTarget decides by a URL, and the transport once more by the address that it
// dials. A Pace keeps requests to other hosts few, and obeys Retry-After. A Failure
// has the Reason why a request got no answer, for programs and for people. The
// package knows no captures and no requests: replay, replay/probe and
// replay/credential send through it.
//
// Source: replay/README.md#hosts-pace-and-journal
package outbound

import (
	"crypto/tls"
	"crypto/x509"
)

// A Policy says which servers may be sent to, and how their certificates are
// verified. Its zero value allows this machine alone.
type Policy struct {
	// Live allows hosts other than this machine: those of AllowHosts.
	Live bool

	// AllowHosts are the hosts that Live allows; see CheckTarget.
	AllowHosts []string

	// Roots are the authorities that may have signed a server's certificate; nil
	// is those of the system.
	Roots *x509.CertPool

	// Insecure leaves the server's certificate unverified.
	Insecure bool

	// Pace limits how often other hosts are asked; nil is no limit and no journal.
	Pace *Pace

	// Dial makes connections, which are checked all the same; nil is a net.Dialer.
	Dial dialFunc
}

// tlsConfig is how the server's certificate is verified.
func (p *Policy) tlsConfig() *tls.Config {
	//nolint:gosec // --upstream-insecure
	return &tls.Config{RootCAs: p.Roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: p.Insecure}
}
