package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
)

// Secure are the names that are sent in a TLS handshake.
type Secure struct {
	// ServerName is the SNI of the TLS handshake; "" means the URL's host.
	ServerName string

	// ALPN is the application protocol that is offered, such as "h2"; "" for none.
	ALPN string
}

// Dial connects to the host of a URL over TCP, with TLS if its scheme is https. With local, or unless
// the policy allows more, it only connects to this machine. at, which may be nil, records the progress.
// The state is nil without TLS.
func Dial(ctx context.Context, u *url.URL, names Secure, local bool, at *Progress, p Policy) (net.Conn, *tls.ConnectionState, error) {
	g := guard{live: p.Live && !local, dial: p.Dial}
	tcp, err := g.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), portOf(u)))
	if err != nil {
		return nil, nil, err
	}
	if u.Scheme != "https" {
		at.connected(false)
		return tcp, nil, nil
	}
	c := p.tlsConfig()
	if c.ServerName = names.ServerName; c.ServerName == "" {
		c.ServerName = u.Hostname()
	}
	if names.ALPN != "" {
		c.NextProtos = []string{names.ALPN}
	}
	at.connected(true)
	conn := tls.Client(tcp, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, nil, err
	}
	at.connected(false)
	state := conn.ConnectionState()
	return conn, &state, nil
}

// connected records that a connection was opened; handshake means that the TLS handshake still follows.
// at may be nil.
func (at *Progress) connected(handshake bool) {
	switch {
	case at == nil:
	case handshake:
		at.handshake.Store(true)
	default:
		at.sent.Store(true)
	}
}
