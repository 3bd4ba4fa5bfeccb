package outbound

import (
	"crypto/tls"
	"errors"
	"net/http"
	"time"
)

const idleTimeout = 10 * time.Second

// errNoHTTP2 ends the TLS handshake with a server that does not negotiate
// HTTP/2 for a call that needs it. net/http would send it as HTTP/1.1.
var errNoHTTP2 = errors.New("the server does not negotiate HTTP/2")

// New returns a transport that speaks one version of HTTP to a URL of a scheme: "2", or
// else 1.1. It has no proxy, follows no redirects, compresses nothing of its own, and
// goes to no address that is not this machine's unless the policy allows it.
//
// Shape: local allows no address but this machine's, whatever the policy allows.
// fallback allows HTTP/1.1 with a server that does not negotiate HTTP/2.
func New(scheme, version string, local, fallback bool, p Policy) *http.Transport {
	t := p.transport(p.Live && !local)
	// of one that was in use when it should have been closed
	t.IdleConnTimeout = idleTimeout
	switch {
	case version != "2":
		t.Protocols.SetHTTP1(true)
	case scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	default:
		t.Protocols.SetHTTP2(true)
		if t.Protocols.SetHTTP1(fallback); !fallback {
			t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
				if s.NegotiatedProtocol != "h2" {
					return errNoHTTP2
				}
				return nil
			}
		}
	}
	return t
}

func (p *Policy) transport(live bool) *http.Transport {
	return &http.Transport{
		DialContext:        guard{live: live, dial: p.Dial}.DialContext,
		DisableCompression: true,
		TLSClientConfig:    p.tlsConfig(),
		Protocols:          new(http.Protocols),
	}
}
