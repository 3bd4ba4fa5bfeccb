package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
)

// Secure are the names that a TLS connection is opened with.
type Secure struct {
	// ServerName is the SNI of the TLS handshake; "" means the URL's host.
	ServerName string

	// ALPN is the protocol that the TLS client offers; "" for none.
	ALPN string
}

// Dial connects to the host of a URL over TCP, and TLS if its scheme is https. It goes to
// no address that is not this machine's unless the policy allows it; see New. at may be nil.
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

// connected notes that there is a connection; handshake: that TLS is still to come.
func (at *Progress) connected(handshake bool) {
	switch {
	case at == nil:
	case handshake:
		at.handshake.Store(true)
	default:
		at.sent.Store(true)
	}
}
