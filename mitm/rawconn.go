package mitm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"unwire/captures"
	"unwire/mitm/raw"
	"unwire/mitm/rewrite"
)

// serverFirstDelay is how long a client may be silent before the proxy checks whether the server sends first.
const serverFirstDelay = 400 * time.Millisecond

// An unreachedError means that the server of a client that sends nothing could not be connected to.
type unreachedError struct {
	// error is the error of connecting to the server.
	error
}

// Unwrap returns the error of connecting.
func (e *unreachedError) Unwrap() error { return e.error }

// sniff detects the protocol of a client's connection by the first bytes of either side. If the client sends
// nothing, it calls connect, waits for the server too, and returns the connection.
//
// Errors: *unreachedError, or that of a client that disconnected.
func (p *Proxy) sniff(client *raw.Conn, connect func() (net.Conn, error)) (kind raw.Protocol, server *raw.Conn, err error) {
	if kind, err = client.Sniff(serverFirstDelay); err != nil || kind != raw.Undecided {
		return kind, nil, err
	}

	// The client is silent: perhaps the server sends first.
	conn, err := connect()
	if err != nil {
		return kind, nil, &unreachedError{err}
	}
	server = raw.NewConn(conn, nil)
	defer context.AfterFunc(p.ctx, func() { _ = conn.Close() })()
	fromServer, err := raw.AwaitFirst(client, server)
	if err == nil && fromServer && speaksHTTP2(server.Peeked()) && len(client.Peeked()) == 0 {
		// In HTTP/2, the client must begin even though the server sends SETTINGS first.
		fromServer, err = false, client.ReadMore(raw.MaxRequestLine)
	}
	switch {
	case err != nil:
		_ = conn.Close()
		return kind, nil, err
	case fromServer:
		return raw.Other, server, nil
	}
	if kind, err = client.Sniff(serverFirstDelay); err != nil {
		_ = conn.Close()
		return kind, nil, err
	}
	return kind, server, nil
}

// speaksHTTP2 reports whether first, the first bytes that a server sent, are an HTTP/2 SETTINGS frame.
//
// Source: RFC 9113, sections 3.4 and 6.5
func speaksHTTP2(first []byte) bool {
	return len(first) >= 9 && first[0] == 0 && first[3] == 4 && first[4] == 0 && string(first[5:9]) == "\x00\x00\x00\x00"
}

// parkConnection keeps a connection that sniff has opened to t, for the client's first request.
func (p *Proxy) parkConnection(t target, server *raw.Conn) {
	if len(server.Peeked()) > 0 {
		_ = server.Close()
		return
	}
	p.dialer.spares.Keep(p.dialer.spareKey(t), server.NetConn())
}

// keepSniffed keeps a TLS connection to the server that sniff has opened, for the next request.
func (o *origin) keepSniffed(server *raw.Conn) {
	conn := server.NetConn().(*serverConn)
	conn.head = append(server.Peeked(), conn.head...)
	o.keepConn(conn)
}

// dialAs connects to the server with TLS; it is an error if the server selects another protocol than pick from
// the offer.
func (o *origin) dialAs(ctx context.Context, offer []string, pick string) (net.Conn, error) {
	if conn := o.claimConn(pick); conn != nil {
		return conn, nil
	}
	conn, err := o.handshake(ctx, offer)
	if err != nil {
		return nil, err
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != pick {
		_ = conn.Close()
		o.forgetNegotiated()
		return nil, fmt.Errorf("the server %s negotiated the protocol %q before (ALPN), but negotiates %q now", o.target.addr, pick, got)
	}
	return conn, nil
}

// serveRaw relays and records a connection that is not HTTP. client is c or TLS on c. If server is nil,
// serveRaw calls connect.
func (p *Proxy) serveRaw(c *clientConn, client net.Conn, server *raw.Conn, transport captures.Transport, connect func() (net.Conn, error)) {
	if !p.hosts.RecordsHost(c.target.addr, c.target.hostPort()) || !p.hosts.RecordsRequest("", c.target.addr, c.target.hostPort()) {
		if p.log.Info("passed on unrecorded", "addr", c.target.addr); transport == captures.RawTCP && server == nil {
			p.forwardUnread(c, c.target.addr)
			return
		}

		// A TLS connection that is not recorded is still relayed, since it was already terminated.
		transport = ""
	}
	if server == nil {
		conn, err := connect()
		if err != nil {
			p.endUnreached(c, transport, &unreachedError{err})
			return
		}
		server = raw.NewConn(conn, nil)
	}

	// Begin recording only when the first bytes arrive.
	admitted := false
	raw.Relay(p.ctx, raw.Config{Client: client, Server: server, Draining: p.draining, Change: p.rewriteRaw(c, transport), Begin: func() raw.Recorder {
		if transport == "" || !p.beginRunning() {
			return nil
		}
		admitted = true
		rec := p.beginRaw(c, c.target, transport)
		if rec == nil {
			return nil
		}
		rec.Connection(p.tlsOf(server.NetConn()), server.RemoteAddr().String())
		return rec
	}})
	if admitted {
		p.endRunning()
	}
}

// rewriteRaw returns the function that selects the rewriting rules for a connection without HTTP, or nil if
// there are no rules.
func (p *Proxy) rewriteRaw(c *clientConn, transport captures.Transport) func(raw.Recorder) rewrite.Exchange {
	if p.opts.Rewrite == nil || transport == "" {
		return nil
	}
	return func(rec raw.Recorder) rewrite.Exchange {
		connection := &captures.Exchange{Transport: transport, Client: c.RemoteAddr().String(), Source: p.opts.Source}
		x := p.opts.Rewrite.Begin(connection, rewrite.Request{URL: string(transport) + "://" + c.target.hostPort(), Started: time.Now()})
		if r, ok := rec.(captures.Recording); ok && x != nil {
			x.Recorded(r.ID())
		}
		return x
	}
}

// beginRaw starts recording a connection without HTTP. It returns nil if that fails.
func (p *Proxy) beginRaw(c *clientConn, to target, transport captures.Transport) captures.Recording {
	rec, err := c.recorder.Begin(captures.Exchange{
		Transport: transport, URL: string(transport) + "://" + to.hostPort(), Started: time.Now(),
		Client: c.RemoteAddr().String(), Source: p.opts.Source,
	})
	if err != nil {
		p.log.Error("forwarded without recording", "addr", to.addr, "err", err)
		return nil
	}
	return rec
}

// endUnreached ends a connection whose client disconnected early, or whose server could not be connected to.
// The latter is recorded. The client receives a TCP reset, because it may not understand any error message.
func (p *Proxy) endUnreached(c *clientConn, transport captures.Transport, err error) {
	var unreached *unreachedError
	if !errors.As(err, &unreached) {
		_ = c.Close()
		return
	}
	if transport != "" {
		p.recordUnreached(c, c.target, transport, err)
	}
	raw.Reset(c)
}

// recordUnreached records, for the client of c, that a connection to a server failed with err, unless the server is
// one that is not recorded.
func (p *Proxy) recordUnreached(c *clientConn, to target, transport captures.Transport, err error) {
	p.log.Warn("server not reached", "addr", to.addr, "err", err)
	if !p.hosts.RecordsHost(to.addr, to.hostPort()) || !p.beginRunning() {
		return
	}
	defer p.endRunning()
	if rec := p.beginRaw(c, to, transport); rec != nil {
		rec.End(captures.Failed, err.Error())
	}
}
