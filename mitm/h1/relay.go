package h1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"unwire/captures"
)

var (
	errEnded         = errors.New("the connection has ended")
	errHandedOver    = errors.New("the connections changed their protocol")
	errClientGone    = errors.New("the client went away")
	errServerGone    = errors.New("the server closed the connection without an answer")
	errNotRepeated   = errors.New("the server closed the connection without an answer; the request was not sent again")
	errServerStopped = errors.New("the server closed the connection within its answer")
	errUnsolicited   = errors.New("the server sent an answer that nobody asked for")
)

// A Relay forwards HTTP/1 between the connection of a client and those to its servers.
// One goroutine reads from the client, and one from each server, so that neither waits
// for the other.
type Relay struct {
	config Config
	ctx    context.Context

	// The reader of the client alone uses these. head has the heads that are not
	// forwarded as they came, content the bodies that came in several chunks.
	client        input
	head, content []byte

	mu sync.Mutex

	// changed is signalled when an exchange ends, or the connection.
	changed sync.Cond

	// running is the exchange whose request is sent and whose answer is awaited.
	running *exchange

	lastAnswer time.Time

	// patience is how long the client may take for what comes next, from since on.
	patience time.Duration
	since    time.Time

	// clientEnded says that the client sends nothing more, closing that it gets nothing
	// more, and draining that the running exchange is the last one.
	clientEnded, closing, draining, ended bool

	handover *handover
	servers  []*server // the most recently used first
}

// An exchange is a request that is being relayed. The fields below answered are guarded
// by the relay's mutex.
type exchange struct {
	request *Request
	route   *Route
	rec     captures.Recording // nil: not recorded
	body    body
	server  *server

	// sent says that all of the request is being written, answered that all of the
	// answer was.
	sent, answered bool

	// answering says that some of the answer may have been forwarded, informed that an
	// informational one was, continued that this told the client to send its body, and
	// refused that the client was told of an error instead.
	answering, informed, continued, refused bool

	// cutOff says that the request's body came in part, abandoned that the server does
	// not accept the rest.
	cutOff, abandoned bool

	// delivered says that the last of the answer is being written, or was, afterEnd that
	// the client had ended its side before.
	delivered, afterEnd bool

	// persistent says that both sides keep their connection after the exchange.
	persistent bool

	// repeatable says that the request may be sent a second time.
	repeatable bool
}

// A handover is a pair of connections that changed their protocol.
type handover struct {
	exchange *exchange
	server   *server
	header   captures.Headers
}

// New makes a relay; Run starts it.
func New(c Config) *Relay {
	r := &Relay{config: c, ctx: context.Background(), client: newInput(c.Client)}
	r.changed.L = &r.mu
	return r
}

// Run serves the connection until it has ended. When ctx ends, what still runs is
// recorded as incomplete, by the cause of ctx.
func (r *Relay) Run(ctx context.Context) {
	r.ctx = ctx
	defer context.AfterFunc(ctx, r.cutOff)()
	for {
		if _, err := r.next(); err != nil {
			return
		}
	}
}

func (r *Relay) cutOff() { r.endAll(captures.Incomplete, context.Cause(r.ctx)) }

// Drain ends the connection when the exchange that runs has ended.
func (r *Relay) Drain() {
	r.mu.Lock()
	r.draining = true
	idle := r.running == nil && r.handover == nil && !r.closing
	r.mu.Unlock()
	if idle {
		r.endAll(captures.Complete, nil)
	}
}

// next relays requests until one comes that is not to be relayed, and returns that.
//
// Errors: any means that the connection has ended.
func (r *Relay) next() (*Request, error) {
	r.expect(idleTimeout)
	for {
		q, err := r.readRequest()
		if err == nil || errors.As(err, new(*Malformed)) {
			if turn := r.awaitTurn(); turn != nil {
				err = turn
			}
		}
		var to *Route
		if err == nil {
			to, err = r.config.Route(q)
		}
		var bad *Malformed
		switch {
		case errors.As(err, &bad):
			r.refuse(q, bad)
			return nil, errEnded
		case err != nil:
			return nil, r.stop(err)
		case to == nil:
			return q, nil
		}
		if err := r.serve(q, to); err != nil {
			return nil, r.stop(err)
		}
	}
}

// readRequest reads the head of the next request, and leaves it in the buffer. With an
// error it returns what was understood of it.
func (r *Relay) readRequest() (*Request, error) {
	begun := false
	more := func() error {
		if !begun && len(r.client.buffered()) > 0 {
			begun = true
			r.expect(headTimeout)
		}
		return r.readAhead()
	}

	// One empty line may precede a request.
	for len(r.client.buffered()) < 2 {
		if err := more(); err != nil {
			return salvage(string(r.client.buffered())), err
		}
	}
	if p := r.client.buffered(); p[0] == '\r' && p[1] == '\n' {
		r.client.consume(2)
	}
	size, err := r.client.scanHead(maxRequestHead, more)
	if err != nil {
		return salvage(string(r.client.buffered())), err
	}
	raw := string(r.client.buffered()[:size])
	q, err := parseRequest(raw)
	if err != nil {
		return salvage(raw), err
	}
	return q, nil
}

// expect begins the time that a client has for what comes next.
func (r *Relay) expect(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing && r.handover == nil {
		r.patience, r.since = d, time.Now()
		_ = r.client.conn.SetReadDeadline(r.since.Add(d))
	}
}

// readAhead reads more from the client. The connection's deadline is not moved for each
// exchange: when it has come, it is looked at whether the client is late.
func (r *Relay) readAhead() error {
	for {
		err := r.client.fill()
		if err == nil {
			return nil
		}
		r.mu.Lock()
		switch {
		case r.ended || r.closing:
			err = errEnded
		case r.handover != nil:
			err = errHandedOver
		case isTimeout(err) && (r.running != nil || time.Since(r.since) < r.patience):
			_ = r.client.conn.SetReadDeadline(time.Now().Add(r.patience))
			r.mu.Unlock()
			continue
		}
		r.mu.Unlock()
		return err
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// awaitTurn waits for the end of the exchange that runs.
func (r *Relay) awaitTurn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running != nil && r.handover == nil && !r.ended && !r.closing {
		r.changed.Wait()
	}
	switch {
	case r.ended || r.closing:
		return errEnded
	case r.handover != nil:
		return errHandedOver
	}
	return nil
}

// stop ends the connection after the client's reader met an error, when all that the
// client is to get was sent.
func (r *Relay) stop(err error) error {
	if errors.Is(err, io.EOF) {
		r.endRequests()
		if turn := r.awaitTurn(); turn != nil {
			err = turn
		}
	}
	switch {
	case errors.Is(err, errHandedOver):
		r.runUpgraded()
		return errEnded
	case errors.Is(err, errEnded):
		r.lingerClient()
	}
	r.endAll(captures.Canceled, errClientGone)
	return errEnded
}

// endRequests passes on that the client sends nothing more.
func (r *Relay) endRequests() {
	r.mu.Lock()
	r.clientEnded = true
	x := r.running
	var server net.Conn
	answered := false
	if x != nil {
		x.cutOff, answered = !x.sent, x.answered
		if x.server != nil {
			server = x.server.conn
		}
	}
	r.mu.Unlock()
	if server != nil {
		_ = closeWrite(server)
	}
	if answered {
		r.finishHalf(x, &x.answered)
	}
}

// lingerClient reads what a client still sends after its last answer, which might be
// lost if the connection was closed at once.
func (r *Relay) lingerClient() {
	r.mu.Lock()
	closing := r.closing && !r.ended && !r.clientEnded
	r.mu.Unlock()
	if !closing {
		return
	}
	for {
		r.client.r, r.client.w = 0, 0
		if err := r.client.fill(); err != nil {
			return
		}
	}
}

// beginClose tells the client that it gets nothing more; r.mu is held.
func (r *Relay) beginClose() {
	if r.closing || r.ended {
		return
	}
	r.closing = true
	_ = closeWrite(r.client.conn)
	_ = r.client.conn.SetReadDeadline(time.Now().Add(clientLinger))
	r.changed.Broadcast()
}

// mayRepeat reports whether a request may be sent a second time if it gets no answer on
// a connection that has served others. One that follows an answer closely may have
// been pipelined, and its client decides, as it does without the proxy.
//
// Source: RFC 9110, section 9.2.2; RFC 9112, section 9.3.2
func (r *Relay) mayRepeat(q *Request) bool {
	switch q.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
	default:
		return false
	}
	return !q.chunked && q.length <= 0 && (r.lastAnswer.IsZero() || time.Since(r.lastAnswer) >= pipelineGap)
}

// takeServer returns the connection to the server with a key, or nil; r.mu is held.
func (r *Relay) takeServer(key any) *server {
	i := slices.IndexFunc(r.servers, func(s *server) bool { return s.key == key && !s.closed })
	if i < 0 {
		return nil
	}
	s := r.servers[i]
	copy(r.servers[1:i+1], r.servers[:i])
	r.servers[0] = s
	return s
}

// finishHalf notes that all of a request, or of its answer, was forwarded, and ends the
// exchange when both were.
func (r *Relay) finishHalf(x *exchange, half *bool) {
	r.mu.Lock()
	*half = true
	if r.running != x || !x.answered || !x.sent && !x.cutOff && !x.abandoned {
		r.mu.Unlock()
		return
	}
	outcome, reason := captures.Complete, error(nil)
	switch {
	case x.cutOff:
		outcome, reason = captures.Canceled, errClientGone
	case x.afterEnd:
		// It may have read the answer, or have left.
		r.mu.Unlock()
		if hasLeft(r.client.conn) {
			outcome, reason = captures.Canceled, errClientGone
		}
		r.mu.Lock()
		if r.running != x {
			r.mu.Unlock()
			return
		}
	}
	r.endRunning()
	x.server.served = true
	if x.persistent && x.sent && !r.draining && !r.clientEnded {
		r.changed.Broadcast()
	} else {
		x.server.close()
		r.beginClose()
	}
	r.mu.Unlock()
	r.endExchange(x, outcome, reason)
}

// endRunning notes that the client was answered; r.mu is held.
func (r *Relay) endRunning() {
	if s := r.running.server; s != nil {
		s.exchange = nil
	}
	now := time.Now()
	r.running, r.lastAnswer = nil, now
	r.patience, r.since = idleTimeout, now
}

// endExchange ends an exchange that does not run any more.
func (r *Relay) endExchange(x *exchange, o captures.Outcome, reason error) {
	if x.rec != nil {
		text := ""
		if reason != nil {
			text = reason.Error()
		}
		x.rec.End(o, text)
	}
	r.config.Release()
}

// endAll closes all connections, and ends the exchange that runs.
func (r *Relay) endAll(o captures.Outcome, reason error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.ended = true
	x := r.running
	if x != nil && o == captures.Canceled && x.delivered && x.sent {
		o, reason = captures.Complete, nil
	}
	r.running = nil

	// The client first: what a server still sends must not look like a clean end.
	_ = r.client.conn.Close()
	for _, s := range r.servers {
		s.close()
	}
	r.changed.Broadcast()
	r.mu.Unlock()
	if x != nil {
		r.endExchange(x, o, reason)
	}
}

// hasLeft reports whether a client that sends nothing more does not read either: its
// system then answers what was sent with a reset.
func hasLeft(conn net.Conn) bool {
	raw := netConn(conn)
	for range 5 {
		if _, err := raw.Write(nil); err != nil {
			return true
		}
		time.Sleep(resetDelay)
	}
	return false
}

// runUpgraded serves connections that changed their protocol.
func (r *Relay) runUpgraded() {
	r.mu.Lock()
	h := r.handover
	r.ended, r.running = true, nil
	for _, s := range r.servers {
		if s != h.server {
			s.close()
		}
	}
	r.mu.Unlock()
	defer r.config.Release()
	_ = r.client.conn.SetReadDeadline(time.Time{})
	client, server := r.client.rest(), h.server.in.rest()
	r.config.Upgrade(client, server, h.exchange.rec, h.exchange.request, h.header)
	_ = client.Close()
	_ = server.Close()
}
