package mitm

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
)

const (
	// lastWords is how long a server that takes nothing more may go on talking.
	lastWords = time.Second
	// lastAnswer is how long a client has to read the last answer and to close:
	// closing first, with something of it unread here, would reset it.
	lastAnswer = 100 * time.Millisecond
)

// An h2Relay passes HTTP/2 on between one connection of a client and one to its
// server, frame by frame: what one says is what the other hears, SETTINGS, PING,
// PRIORITY, windows and reset codes too, so that flow control is theirs. Header
// blocks pass as they are, HPACK's state being theirs as well, and are decoded
// on the side, for the record.
//
// It changes something in two cases only. In front of an origin, requests are
// addressed to that. When recording stops, streams that begin are refused. In
// both the client's header blocks are encoded anew.
//
// A request goes to the server that its connection is to, whatever its
// :authority says, as it would without the proxy: that server answers 421 if
// it is not for it.
type h2Relay struct {
	proxy                  *Proxy
	target                 target
	origin                 *url.URL // that the client takes the proxy for; nil: none
	client, server         *h2End
	clientAddr, serverAddr string
	tls                    captures.TLS
	asked                  *atomic.Bool     // of the origin: a request came
	tables                 [2]atomic.Uint32 // by direction: how large HPACK's table may be

	mu      sync.Mutex
	streams map[uint32]*h2Stream
	newest  uint32 // of the client's streams
	leaving bool   // it ends when the last stream has
	over    bool
	away    error // the server's GOAWAY
}

// interceptH2 serves a client that speaks HTTP/2 on conn, which is the client's
// or the TLS on it: frame by frame if the server does too, and otherwise by the
// HTTP server, which tells the client why not.
func (p *Proxy) interceptH2(c *clientConn, wire *wireConn, conn net.Conn, t target, origin *url.URL) {
	buf, err := readPreface(conn)
	if err != nil {
		_ = conn.Close()
		return
	}
	o := p.origins.get(t)
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	server, err := o.dialH2(ctx)
	if err != nil {
		o.asked.Store(true)
		c.target, c.origin, c.unreached = t, origin, err
		if errors.Is(err, errNoHTTP2) {
			c.unreached = nil // by HTTP/1 it can be
		}
		p.conns.push(&replayConn{conn, buf})
		return
	}
	r := &h2Relay{
		proxy: p, target: t, origin: origin,
		client:     &h2End{wireConn: wire, conn: conn, inside: true}, // the server's SETTINGS come first
		server:     &h2End{wireConn: server.wire, conn: server.conn},
		clientAddr: c.RemoteAddr().String(), serverAddr: server.conn.RemoteAddr().String(),
		tls:     p.tlsOf(server.conn),
		asked:   &o.asked,
		streams: make(map[uint32]*h2Stream),
	}
	if !p.addRelay(r) {
		r.end(captures.Incomplete, errStopped)
		return
	}
	defer p.removeRelay(r)
	r.run(buf)
}

// readPreface reads at least what a client begins HTTP/2 with.
func readPreface(conn net.Conn) ([]byte, error) {
	_ = conn.SetReadDeadline(time.Now().Add(readHeaderTimeout))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 4<<10)
	n, err := io.ReadAtLeast(conn, buf, len(clientPreface))
	if err != nil {
		return nil, err
	}
	if string(buf[:len(clientPreface)]) != clientPreface {
		return nil, badFrame(codeProtocol, "no preface")
	}
	return buf[:n], nil
}

// run pumps until the connection has ended; head is what was read of it.
func (r *h2Relay) run(head []byte) {
	defer context.AfterFunc(r.proxy.ctx, func() { r.end(captures.Incomplete, errStopped) })()
	up := newPump(r, captures.Up, r.client, r.server)
	down := newPump(r, captures.Down, r.server, r.client)
	up.have = copy(up.buf, head)
	if r.origin != nil {
		up.rewrite()
	}
	up.pass(head[:len(clientPreface)])
	up.parsed = len(clientPreface)
	both := make(chan struct{})
	go func() {
		defer close(both)
		side, err := down.run()
		r.broke(down, side, err)
	}()
	side, err := up.run()
	r.broke(up, side, err)
	<-both
}

// broke ends the connection whose one side broke. A server that takes nothing
// more may have said why not, which the other pump is still to hear.
func (r *h2Relay) broke(p *pump, side *h2End, err error) {
	var bad *h2Error
	if errors.As(err, &bad) {
		r.proxy.log.Warn("the connection is ended", "addr", r.target.addr, "err", err)
		side.inject(goAwayFrame(0, bad.code, bad.text))
	}
	switch {
	case side == r.client && bad == nil:
		r.end(captures.Canceled, errors.New("the client went away"))
	case side == r.client:
		r.end(captures.Canceled, err)
	case p.dst == side && bad == nil:
		r.mu.Lock()
		if r.away == nil {
			r.away = err
		}
		r.mu.Unlock()
		_ = r.server.conn.SetReadDeadline(time.Now().Add(lastWords))
	default:
		r.end(captures.Reset, r.serverError(err))
	}
}

// goneAway notes what one side says before it ends the connection.
func (r *h2Relay) goneAway(d captures.Direction, code h2Code) {
	if d == captures.Down && code != 0 {
		r.mu.Lock()
		r.away = &serverCode{"the server closed the connection", code}
		r.mu.Unlock()
	}
}

func (r *h2Relay) serverError(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.away != nil && !errors.As(err, new(*h2Error)):
		return r.away
	case errors.Is(err, io.EOF):
		return errors.New("the server closed the connection")
	}
	return err
}

// end ends the connection, and with it what still goes on.
func (r *h2Relay) end(o captures.Outcome, err error) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.over = true
	left := r.streams
	r.streams = nil
	r.mu.Unlock()
	for _, s := range left {
		s.end(o, err)
	}
	_ = r.client.conn.Close()
	_ = r.server.conn.Close()
	for range left {
		r.proxy.leave()
	}
}

// settled lets exchanges go whose last bytes were written, and ends a
// connection that only waited for them.
func (r *h2Relay) settled(n int) {
	for range n {
		r.proxy.leave()
	}
	if n > 0 && r.idle() {
		time.AfterFunc(lastAnswer, func() { r.end(captures.Complete, nil) })
	}
}

// idle reports whether the connection ended but for its being closed.
func (r *h2Relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving && len(r.streams) == 0
}

// leave asks the client to begin no more, and ends when what it has begun has.
func (r *h2Relay) leave() {
	r.mu.Lock()
	r.leaving = true
	r.mu.Unlock()
	r.client.inject(goAwayFrame(maxStreamID, 0, ""))
	if r.idle() {
		r.end(captures.Complete, nil)
	}
}

func goAwayFrame(last uint32, code h2Code, text string) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, uint32(code))
	return appendFrame(nil, frameGoAway, 0, 0, append(payload, text...))
}

// addRelay notes a relay, which Shutdown ends.
func (p *Proxy) addRelay(r *h2Relay) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.relays[r] = struct{}{}
	p.relaying.Add(1)
	return true
}

func (p *Proxy) removeRelay(r *h2Relay) {
	p.mu.Lock()
	delete(p.relays, r)
	p.mu.Unlock()
	p.relaying.Done()
}

// A serverConn is a connection to a server that speaks HTTP/2.
type serverConn struct {
	wire *wireConn
	conn net.Conn
}

var errNoHTTP2 = errors.New("does not speak HTTP/2")

// dialH2 connects to a server that speaks HTTP/2, in clear by prior knowledge.
func (o *origin) dialH2(ctx context.Context) (serverConn, error) {
	if o.target.scheme == "http" {
		raw, err := o.dialer.dial(ctx, "tcp", o.target.addr)
		if err != nil {
			return serverConn{}, err
		}
		wire := &wireConn{Conn: raw}
		return serverConn{wire, wire}, nil
	}
	if !o.picked(protoH2) {
		switch pick, err := o.ask(ctx, []string{protoH2, protoH1}); {
		case err != nil:
			return serverConn{}, err
		case pick != protoH2:
			return serverConn{}, fmt.Errorf("%s %w", o.target.addr, errNoHTTP2)
		}
	}
	conn, err := o.dialTLS(ctx, protoH2)
	if err != nil {
		return serverConn{}, err
	}
	return serverConn{conn.(*tls.Conn).NetConn().(*wireConn), conn}, nil
}
