package outbound

import (
	"crypto/tls"
	"errors"
	"net/http"
	"time"
)

// idleTimeout is how long an idle connection is kept.
const idleTimeout = 10 * time.Second

// ErrNoHTTP2 reports that a call needs HTTP/2 and the server does not support it. It also aborts the TLS
// handshake; net/http would otherwise send the call over HTTP/1.1.
var ErrNoHTTP2 = errors.New("the server does not support HTTP/2")

// New returns an HTTP transport for URLs of a scheme that uses one version of HTTP: "2" or "1.1". It
// uses no proxy, follows no redirects, adds no compression, and connects only to this machine unless
// the policy allows more.
//
// Shape: local restricts it to this machine in any case. fallback allows HTTP/1.1 if the server does
// not negotiate HTTP/2.
func New(scheme, version string, local, fallback bool, p Policy) *http.Transport {
	t := p.transport(p.Live && !local)
	// An idle connection of an abandoned transport is closed after this time.
	t.IdleConnTimeout = idleTimeout
	switch {
	case version != "2":
		t.Protocols.SetHTTP1(true)
		if scheme == "http" {
			t.DialContext = dialHTTP1(t.DialContext)
		}
	case scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	default:
		t.Protocols.SetHTTP2(true)
		if t.Protocols.SetHTTP1(fallback); !fallback {
			t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
				if s.NegotiatedProtocol != "h2" {
					return ErrNoHTTP2
				}
				return nil
			}
		}
	}
	return t
}

// transport returns an HTTP transport without a version; live allows addresses other than loopback.
func (p *Policy) transport(live bool) *http.Transport {
	return &http.Transport{
		DialContext:        guard{live: live, dial: p.Dial}.DialContext,
		DisableCompression: true,
		TLSClientConfig:    p.tlsConfig(),
		Protocols:          new(http.Protocols),
	}
}
