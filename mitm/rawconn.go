package mitm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"unwire/captures"
	"unwire/mitm/raw"
)

// silentClientDelay is how long a client may send nothing before the server is
// checked for sending first.
const silentClientDelay = 400 * time.Millisecond

// An unreachedError says that there is no connection to the server of a client that has
// sent nothing.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// sniff tells what passes on a client's connection by what either side sends first. To
// find that out for a client that sends nothing it connects to the server, which is
// returned then.
//
// Errors: *unreachedError; the client went away.
func (p *Proxy) sniff(client *raw.Conn, connect func() (net.Conn, error)) (kind raw.Protocol, server *raw.Conn, err error) {
	if kind, err = client.Sniff(silentClientDelay); err != nil || kind != raw.Undecided {
		return kind, nil, err
	}
	conn, err := connect()
	if err != nil {
		return kind, nil, &unreachedError{err}
	}
	server = raw.NewConn(conn, nil)
	defer context.AfterFunc(p.ctx, func() { _ = conn.Close() })()
	fromServer, err := raw.AwaitFirst(client, server)
	if err == nil && fromServer && speaksHTTP2(server.Peeked()) && len(client.Peeked()) == 0 {
		// The client is to begin all the same.
		fromServer, err = false, client.ReadMore(raw.MaxRequestLine)
	}
	switch {
	case err != nil:
		_ = conn.Close()
		return kind, nil, err
	case fromServer:
		return raw.Other, server, nil
	}
	if kind, err = client.Sniff(silentClientDelay); err != nil {
		_ = conn.Close()
		return kind, nil, err
	}
	return kind, server, nil
}

// speaksHTTP2 reports whether a server begins with HTTP/2's SETTINGS.
//
// Source: RFC 9113, sections 3.4 and 6.5
func speaksHTTP2(first []byte) bool {
	return len(first) >= 9 && first[0] == 0 && first[3] == 4 && first[4] == 0 && string(first[5:9]) == "\x00\x00\x00\x00"
}

// keepSpare keeps a connection that was opened to find out whether its server speaks
// first, for the client's first request.
func (p *Proxy) keepSpare(t target, server *raw.Conn) {
	if len(server.Peeked()) > 0 {
		_ = server.Close()
		return
	}
	p.dialer.spares.Keep(p.dialer.spareKey(t), server.NetConn())
}

// keepSniffed is keepSpare for TLS.
func (o *origin) keepSniffed(server *raw.Conn) {
	conn := server.NetConn().(*serverConn)
	conn.head = append(server.Peeked(), conn.head...)
	o.keepConn(conn)
}

// dialAs connects to a server that picks a certain protocol from an offer.
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
		return nil, fmt.Errorf("%s has picked %q from the client's protocols before, and picks %q now", o.target.addr, pick, got)
	}
	return conn, nil
}

// serveRaw passes on, and records, what is not HTTP between a client, which may be the TLS
// on c, and its server, which is connected to if it is nil.
func (p *Proxy) serveRaw(c *clientConn, client net.Conn, server *raw.Conn, transport captures.Transport, connect func() (net.Conn, error)) {
	if !p.hosts.RecordsHost(c.target.addr, c.target.shown()) || !p.hosts.RecordsRequest("", c.target.addr, c.target.shown()) {
		if p.log.Info("passed on unrecorded", "addr", c.target.addr); transport == captures.RawTCP && server == nil {
			p.forwardUnread(c, c.target.addr)
			return
		}
		transport = ""
	}
	if server == nil {
		conn, err := connect()
		if err != nil {
			p.endUnserved(c, transport, &unreachedError{err})
			return
		}
		server = raw.NewConn(conn, nil)
	}
	admitted := false
	raw.Relay(p.ctx, raw.Config{Client: client, Server: server, Draining: p.draining, Begin: func() raw.Recorder {
		if transport == "" || !p.admitExchange() {
			return nil
		}
		admitted = true
		rec := p.beginRaw(c, transport)
		if rec == nil {
			return nil
		}
		rec.Connection(p.tlsOf(server.NetConn()), server.RemoteAddr().String())
		return rec
	}})
	if admitted {
		p.releaseExchange()
	}
}

// beginRaw starts the recording of a connection without HTTP; nil: it cannot be recorded.
func (p *Proxy) beginRaw(c *clientConn, transport captures.Transport) captures.Recording {
	rec, err := c.recorder.Begin(captures.Exchange{
		Transport: transport, URL: string(transport) + "://" + c.target.shown(), Started: time.Now(),
		Client: c.RemoteAddr().String(), Source: p.opts.Source,
	})
	if err != nil {
		p.log.Error("passes unrecorded", "addr", c.target.addr, "err", err)
		return nil
	}
	return rec
}

// endUnserved ends a connection whose client went away before anything was known, or whose
// server is not reached. That is recorded; the client sees a reset, since it is not known
// to expect words.
func (p *Proxy) endUnserved(c *clientConn, transport captures.Transport, err error) {
	var unreached *unreachedError
	if !errors.As(err, &unreached) {
		_ = c.Close()
		return
	}
	p.log.Warn("server not reached", "addr", c.target.addr, "err", err)
	if transport != "" && p.hosts.RecordsHost(c.target.addr, c.target.shown()) && p.admitExchange() {
		if rec := p.beginRaw(c, transport); rec != nil {
			rec.End(captures.Failed, err.Error())
		}
		p.releaseExchange()
	}
	raw.Reset(c)
}
