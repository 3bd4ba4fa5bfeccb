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
	// errEnded and the errors below end a relay or an exchange. errUnsolicited is for a response without a
	// request.
	errEnded         = errors.New("the connection has ended")
	errHandedOver    = errors.New("the connection was switched to another protocol")
	errServerGone    = errors.New("the server closed the connection without a response")
	errNotRepeated   = errors.New("the server closed the connection without a response; unwire did not send the request again")
	errServerStopped = errors.New("the server closed the connection before its response was complete")
	errUnsolicited   = errors.New("the server sent a response without a request")
)

// A Relay forwards HTTP/1 requests and responses between one client and one or more servers. One goroutine
// reads from the client and one from each server, so that no direction waits for another.
type Relay struct {
	// config has the client's connection, the routes to servers, and the functions that record exchanges.
	config Config
	// ctx ends when the relaying has to stop.
	ctx context.Context

	// client reads from the client. Only the goroutine that reads from the client uses it.
	client input
	// head is the buffer for request heads that are changed; only the goroutine that reads from the client uses it.
	head []byte
	// content is the buffer for request bodies that arrive in several chunks; only the goroutine that reads from the
	// client uses it.
	content []byte

	// mu guards the fields below, and fields of exchanges and servers.
	mu sync.Mutex

	// changed is signalled when an exchange or the connection ends.
	changed sync.Cond

	// running is the exchange whose request is being sent or whose response is awaited; nil if there is
	// none.
	running *exchange

	// lastAnswer is the time at which the last exchange ended.
	lastAnswer time.Time

	// patience is how long the client may take to send the next bytes.
	patience time.Duration
	// since is the time from which patience is measured.
	since time.Time

	// clientEnded means that the client sends nothing more.
	clientEnded bool
	// closing means that nothing more is sent to the client.
	closing bool
	// draining means that the running exchange is the last one.
	draining bool
	// ended means that all connections are closed or handed over to another protocol.
	ended bool

	// handover is set when both connections have switched to another protocol; nil before.
	handover *handover
	// servers are the open connections to servers, the most recently used first.
	servers []*server
}

// An exchange is a request that is being relayed, with its response. The fields from sent on are guarded by the
// relay's mutex.
type exchange struct {
	// request is the head of the request.
	request *Request
	// route is the server to which the request is forwarded, and the changes to its head.
	route *Route
	// rec is the recording of the exchange; nil if it is not recorded.
	rec captures.Recording
	// body finds the end of the request's body.
	body body
	// server is the connection to the server on which the exchange runs; nil if it has none yet.
	server *server

	// sent means that all of the request was received and is being forwarded.
	sent bool
	// answered means that all of the response was forwarded.
	answered bool

	// answering means that forwarding the response has begun.
	answering bool
	// informed means that an informational response (1xx) was forwarded.
	informed bool
	// continued means that the status 100 (Continue) was forwarded.
	continued bool
	// refused means that the client gets another answer instead of the response: an error, or a rule's answer. The
	// function that writes that answer ends the exchange.
	refused bool

	// cutOff means that the client disconnected within the request body.
	cutOff bool
	// abandoned means that the server does not accept the rest of the request body.
	abandoned bool

	// delivered means that the last part of the response is being or was written to the client.
	delivered bool
	// afterEnd means that the client had half-closed its connection before the last part of the response was written.
	afterEnd bool

	// change is the additional state if rules may change the bodies; nil otherwise.
	change *change

	// persistent means that both sides keep their connections open after the exchange.
	persistent bool

	// repeatable means that the request may be sent a second time.
	repeatable bool
}

// A handover is a pair of connections, to client and server, that have switched to another protocol.
type handover struct {
	// exchange is the exchange whose response switched the protocol.
	exchange *exchange
	// server is the connection to the server.
	server *server
	// header are the header fields of the response that switched the protocol.
	header captures.Headers
}

// New returns a Relay, which must be started by Run.
func New(c Config) *Relay {
	r := &Relay{config: c, ctx: context.Background(), client: newInput(c.Client)}
	r.changed.L = &r.mu
	return r
}

// Run relays requests until the client's connection has ended. When ctx ends, the running exchange is recorded
// as incomplete, with the cause of ctx as the reason.
func (r *Relay) Run(ctx context.Context) {
	r.ctx = ctx
	defer context.AfterFunc(ctx, r.cutOff)()
	for {
		if _, err := r.next(); err != nil {
			return
		}
	}
}

// cutOff closes all connections, because the context has ended.
func (r *Relay) cutOff() { r.endAll(captures.Incomplete, context.Cause(r.ctx)) }

// Drain closes the connections as soon as the running exchange has ended.
func (r *Relay) Drain() {
	r.mu.Lock()
	r.draining = true
	idle := r.running == nil && r.handover == nil && !r.closing
	r.mu.Unlock()
	if idle {
		r.endAll(captures.Complete, nil)
	}
}

// next relays requests until one arrives that is not to be relayed (because Config.Route returned nil), and
// returns that one.
//
// Errors: any error means that the client's connection has ended.
func (r *Relay) next() (*Request, error) {
	r.expect(idleTimeout)
	for {
		q, err := r.readRequest()
		// The answers must be in the order of the requests, so a refusal waits for its turn as well.
		if _, refused := errors.AsType[*Malformed](err); refused || err == nil {
			if turn := r.awaitTurn(); turn != nil {
				err = turn
			}
		}
		var to *Route
		if err == nil {
			to, err = r.config.Route(q)
		}
		bad, refused := errors.AsType[*Malformed](err)
		switch {
		case refused:
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

// readRequest reads the head of the next request, which remains in the buffer. With an error it returns the
// parts that could be parsed.
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

// expect sets the time within which the client must send the next bytes.
func (r *Relay) expect(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing && r.handover == nil {
		r.patience, r.since = d, time.Now()
		_ = r.client.conn.SetReadDeadline(r.since.Add(d))
	}
}

// readAhead reads more bytes from the client into the buffer. For speed, the connection's deadline is not
// changed for every exchange: after a timeout, readAhead checks whether the client is really late.
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

// isTimeout reports whether an error means that a deadline has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// awaitTurn waits until no exchange is running. It returns an error if the connection ends meanwhile.
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

// stop ends the relay after an error of reading from the client. It first waits until everything for the client
// was sent.
func (r *Relay) stop(err error) error {
	// A client that has ended its direction may still read the answer.
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

// endRequests half-closes the connection to the server, because the client sends nothing more.
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
	if x != nil && x.change != nil {
		x.change.exchange.ClientLeft()
	}
	if server != nil {
		_ = closeWrite(server)
	}
	if answered {
		r.finishHalf(x, &x.answered)
	}
}

// lingerClient reads and discards the bytes that a client sends after its last response. If the
// connection were closed immediately, the system would send a TCP reset, and the client might lose the
// response.
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

// beginClose closes the sending direction to the client. The caller has locked r.mu.
func (r *Relay) beginClose() {
	if r.closing || r.ended {
		return
	}
	r.closing = true
	_ = closeWrite(r.client.conn)
	_ = r.client.conn.SetReadDeadline(time.Now().Add(clientLinger))
	r.changed.Broadcast()
}

// mayRepeat reports whether a request may be sent a second time if the server closes a reused connection
// without a response. A request that closely follows a response may have been pipelined; then the client
// decides about repeating it, as it would without the proxy.
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

// takeServer returns the open connection with a Route.Key, or nil, and marks it as the most recently used. The
// caller must have locked r.mu.
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

// finishHalf records that a whole request or response was forwarded; half is &x.sent or &x.answered. It ends
// the exchange when both were forwarded.
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
		// The client has either read the answer or left before it.
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
	// A connection is reused only if both sides keep it.
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

// endRunning makes the relay ready for the next exchange after the client received a response. The caller has
// locked r.mu.
func (r *Relay) endRunning() {
	if s := r.running.server; s != nil {
		s.exchange = nil
	}
	now := time.Now()
	r.running, r.lastAnswer = nil, now
	r.patience, r.since = idleTimeout, now
}

// endExchange ends the recording of an exchange that is no longer running.
func (r *Relay) endExchange(x *exchange, o captures.Outcome, reason error) {
	if x.change != nil {
		defer x.change.end()
	}
	if x.rec != nil {
		text := ""
		if reason != nil {
			text = reason.Error()
		}
		x.rec.End(o, text)
	}
	r.config.Release()
}

// endAll closes all connections and ends the running exchange with an outcome. Only the first call has an
// effect.
func (r *Relay) endAll(o captures.Outcome, reason error) {
	x, complete := r.closeAll()
	if x == nil {
		return
	}
	// The answer was complete, so the client did not cancel it.
	if o == captures.Canceled && complete {
		o, reason = captures.Complete, nil
	}
	r.endExchange(x, o, reason)
}

// closeAll closes the connections, and returns the running exchange, which the caller has to end; nil if there is none.
// complete means that its whole response was sent before.
func (r *Relay) closeAll() (x *exchange, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, false
	}
	r.ended = true
	x = r.running
	complete = x != nil && x.delivered && x.sent
	r.running = nil

	// Close the client first, so that it does not take the end of a server's data for the end of the answer.
	_ = r.client.conn.Close()
	for _, s := range r.servers {
		s.close()
	}
	r.changed.Broadcast()
	return x, complete
}

// hasLeft reports whether a client that has ended its sending direction no longer reads either; its system then
// responds to data with a reset.
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

// runUpgraded relays bytes between two connections that have switched to another protocol (handover), until
// they end.
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
