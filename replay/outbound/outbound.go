// Package outbound decides what may leave this machine. A Policy decides which servers may be
// contacted, over which transport and how often; a Journal records each request and its outcome; a
// Progress distinguishes a request that was not sent from one that got no answer.
//
//	if err := outbound.CheckTarget(u, policy.Live, policy.AllowHosts); err != nil {
//		return err
//	}
//	resp, err := outbound.New(u.Scheme, "2", false, true, policy).RoundTrip(req)
//
// CheckTarget checks a URL, and the transport checks the address again when it dials. A Pace limits
// the rate of requests to other hosts, and obeys Retry-After. A Failure has the Reason why a
// request got no answer, for programs and for people. The package does not depend on captures;
// replay, replay/probe and replay/credential send through it.
//
// Source: replay/README.md#hosts-pace-and-journal
package outbound

import (
	"crypto/tls"
	"crypto/x509"
)

// A Policy determines which servers may be contacted, and how their certificates are verified. The zero
// value allows only this machine.
type Policy struct {
	// Live allows the hosts in AllowHosts, in addition to this machine.
	Live bool

	// AllowHosts are the hosts that may be contacted if Live is set: as a name, as name:port, or as *.domain for
	// all names below domain.
	AllowHosts []string

	// Roots are the authorities that verify the server's certificate; nil means the system's trust
	// store.
	Roots *x509.CertPool

	// Insecure disables the verification of the server's certificate.
	Insecure bool

	// Pace limits the requests to other hosts; nil means no limit and no journal.
	Pace *Pace

	// Dial opens connections; nil means a net.Dialer. The addresses are checked against the policy in
	// any case.
	Dial dialFunc
}

// tlsConfig returns the TLS settings for verifying the server's certificate.
func (p *Policy) tlsConfig() *tls.Config {
	//nolint:gosec // --upstream-insecure
	return &tls.Config{RootCAs: p.Roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: p.Insecure}
}
