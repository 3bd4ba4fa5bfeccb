package h1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// A server is one connection to a server. It carries exchanges of one client only, one at a time.
type server struct {
	// relay is the relay that uses the connection.
	relay *Relay
	// key is the Route.Key of the routes that may use the connection.
	key any
	// bound means that the connection is closed together with the client's (see Route.Bound).
	bound bool
	// conn is the connection.
	conn net.Conn

	// in reads from the connection. Only the goroutine that reads from the server uses it.
	in input
	// content is the buffer for bodies that arrive in several chunks. Only the goroutine that reads from the server
	// uses it.
	content []byte

	// exchange is the exchange running on the connection; nil if there is none. The relay's mutex guards it.
	exchange *exchange
	// served means that an earlier exchange has ended on the connection. The relay's mutex guards it.
	served bool
	// closed means that no further exchange may use the connection. The relay's mutex guards it.
	closed bool
}

// close closes the connection. The caller has locked the relay's mutex.
func (s *server) close() {
	s.closed = true
	_ = s.conn.Close()
}

// run forwards responses from the server until the connection ends.
func (s *server) run() {
	for {
		if err := s.relayAnswer(); err != nil {
			var stop *rewrite.Stop
			if x := s.current(); x != nil && errors.As(err, &stop) {
				_ = s.relay.stopChanged(x, stop)
				return
			}
			if !errors.Is(err, errHandedOver) {
				s.relay.loseServer(s, err)
			}
			return
		}
	}
}

// current returns the exchange that waits for a response on this connection, or nil.
func (s *server) current() *exchange {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if x := s.exchange; x != nil && !x.answered && !s.closed {
		return x
	}
	return nil
}

// readHead reads more bytes of a response's head. It is an error if no request waits for a response.
func (s *server) readHead() error {
	if err := s.in.fill(); err != nil {
		return err
	}
	if s.current() == nil {
		return errUnsolicited
	}
	return nil
}

// relayAnswer forwards one response, each part as soon as it arrives.
//
// Errors: *Malformed; *refusedError; *clientError; errors of the server's connection.
func (s *server) relayAnswer() error {
	size, err := s.in.scanHead(maxResponseHead, s.readHead)
	if err != nil {
		return err
	}
	a, err := parseResponse(string(s.in.buffered()[:size]))
	if err != nil {
		return err
	}
	x := s.current()

	switch {
	case x == nil:
		return errUnsolicited
	case a.changesProtocol(x.request.Method):
		return s.handOver(x, a)
	case a.status < 200:
		return s.inform(x, a)
	case x.route.Refusal != nil:
		if err := x.route.Refusal(a.status, a.header); err != nil {
			return &refusedError{err}
		}
	}
	a.body = a.bodyOf(x.request.Method)
	b := &a.body
	if !s.beginAnswer(x, a) {
		return errEnded
	}
	if x.change != nil {
		defer x.change.responding.Done()
	}
	if x.rec != nil {
		x.rec.Response(a.status, a.header)
	}

	forward := s.forwardBody
	switch {
	case x.change == nil:
	case !x.change.exchange.Diverts(captures.Down):
		// Rules may need the head to decide about frames of the request.
		x.change.exchange.Response(a.status, a.header)
	case !a.mayHaveBody(x.request.Method):
		forward = s.forwardBodiless
	default:
		forward = s.forwardChanged
	}
	if err := forward(x, a); err != nil {
		return err
	}
	if x.rec != nil && len(b.trailers) > 0 {
		x.rec.Trailers(captures.Down, b.trailers)
	}
	if len(s.in.buffered()) > 0 {
		s.relay.mu.Lock()
		// Nobody asked for the bytes after the answer, so the connection must not be reused.
		x.persistent = false
		s.relay.mu.Unlock()
	}
	s.relay.finishHalf(x, &x.answered)
	return nil
}

// inform forwards an informational response (1xx).
func (s *server) inform(x *exchange, a *response) error {
	if c := x.change; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	s.relay.mu.Lock()
	refused := x.refused
	x.informed, x.continued = true, x.continued || a.status == http.StatusContinue
	s.relay.mu.Unlock()
	if refused {
		return errEnded
	}
	return s.forward(a.size)
}

// forward writes the first n buffered bytes of the response to the client.
func (s *server) forward(n int) error {
	_, err := s.relay.client.conn.Write(s.in.buffered()[:n])
	s.in.consume(n)
	if err != nil {
		return &clientError{err}
	}
	return nil
}

// beginAnswer updates the exchange at the beginning of its response, and reports whether the response may be
// forwarded.
func (s *server) beginAnswer(x *exchange, a *response) bool {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if x.refused {
		return false
	}
	x.answering = true
	if x.change != nil {
		x.change.responding.Add(1)
	}
	x.persistent = x.request.persistent && a.persistent && a.body.kind != bodyUntilClose

	// The client may omit the body if it was not told to send it, and the server could take the next request for
	// it.
	if x.request.expects && !x.sent && !x.continued {
		x.persistent = false
	}
	return true
}

// forwardBody forwards the head and body of a response, with one write to the client for each read from the
// server.
func (s *server) forwardBody(x *exchange, a *response) error {
	b := &a.body
	head := a.size
	for {
		if len(s.content) < len(s.in.buf) && b.kind == bodyChunked {
			s.content = make([]byte, len(s.in.buf))
		}
		n, content, bad := b.scan(s.in.buffered()[head:], s.content)
		// Record before forwarding, so that the capture has every byte that the client may have
		// seen.
		s.relay.record(x, captures.Down, content)
		if b.done && bad == nil {
			s.noteDelivery(x, true)
		}
		if err := s.forward(head + n); err != nil {
			s.noteDelivery(x, false)
			return err
		}
		head = 0
		if bad != nil || b.done {
			return bad
		}

		// A body without a length ends with the connection.
		switch err := s.in.fill(); {
		case err == io.EOF && b.kind == bodyUntilClose:
			s.noteDelivery(x, true)
			return nil
		case err == io.EOF:
			return b.incomplete()
		case err != nil:
			return err
		}
	}
}

// noteDelivery records in the exchange whether the last part of the response is being written to the client.
func (s *server) noteDelivery(x *exchange, delivered bool) {
	s.relay.mu.Lock()
	x.delivered, x.afterEnd = delivered, s.relay.clientEnded
	s.relay.mu.Unlock()
}

// handOver forwards the response that switches the protocol, and hands both connections over to the goroutine
// that reads from the client (see runUpgraded).
func (s *server) handOver(x *exchange, a *response) error {
	r := s.relay
	r.mu.Lock()
	whole := x.sent && !x.refused
	x.answering = true
	r.mu.Unlock()
	if !whole {
		return errors.New("the server changed the protocol before the request had ended")
	}
	if x.rec != nil {
		x.rec.Response(a.status, a.header)
	}
	if err := s.forward(a.size); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errEnded
	}
	r.handover = &handover{exchange: x, server: s, header: a.header}
	// Interrupt the goroutine that reads from the client.
	_ = r.client.conn.SetReadDeadline(time.Unix(1, 0))
	r.changed.Broadcast()
	return errHandedOver
}

// A refusedError means that a response comes from a proxy and not from the server itself.
type refusedError struct {
	// err is the proxy's error.
	err error
}

// Error returns the text of the underlying error.
func (e *refusedError) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *refusedError) Unwrap() error { return e.err }

// A clientError means that the client accepts no more bytes of a response.
type clientError struct {
	// err is the error of writing to the client.
	err error
}

// Error returns the text of the underlying error.
func (e *clientError) Error() string { return e.err.Error() }

// loseServer handles the end of the connection s to a server because of err, and ends the exchange on it, unless the
// client gets another answer (see exchange.refused).
func (r *Relay) loseServer(s *server, err error) {
	r.mu.Lock()
	x, known := s.exchange, !s.closed
	s.close()
	if i := indexOf(r.servers, s); i >= 0 {
		r.servers = append(r.servers[:i], r.servers[i+1:]...)
	}
	if x == nil || r.running != x || x.refused {
		// The client takes its connection for this one. It is not closed before another answer was written.
		if s.bound && known && !r.ended && (x == nil || r.running != x) {
			r.beginClose()
		}
		r.mu.Unlock()
		return
	}
	got := len(s.in.buffered()) > 0 || x.informed
	// A server may close an idle connection at any time, even while a request is on its way.
	repeats := !x.answering && !got && s.served && x.repeatable && !errors.As(err, new(*clientError))
	answered, answering := x.answered, x.answering
	x.repeatable, x.persistent = false, false
	r.mu.Unlock()
	switch {
	case answered:
		// The server does not need the rest of the request.
		r.finishHalf(x, &x.sent)
	case repeats:
		r.repeat(x)
	case errors.As(err, new(*clientError)):
		r.endAll(captures.Canceled, errClientGone)
	default:
		r.failBroken(x, err, answering, s.served && !got)
	}
}

// indexOf returns the index of s in servers, or -1 if it is not there.
func indexOf(servers []*server, s *server) int {
	for i, other := range servers {
		if other == s {
			return i
		}
	}
	return -1
}

// failBroken ends an exchange whose server connection has failed. answering means that forwarding the response
// had begun, and unanswered that a reused connection ended before any response.
func (r *Relay) failBroken(x *exchange, err error, answering, unanswered bool) {
	if !answering {
		if a := r.explain(x, err); a != nil {
			_ = r.answerInstead(x, a, x.sent)
			return
		}
	}
	r.mu.Lock()
	left := r.clientEnded
	r.mu.Unlock()
	switch {
	case left:
		r.endAll(captures.Canceled, errClientGone)
	case r.ctx.Err() != nil:
		r.cutOff()
	case unanswered && !answering:
		r.endAll(captures.Reset, errNotRepeated)
	case errors.Is(err, io.EOF) && !answering:
		r.endAll(captures.Reset, errServerGone)
	case errors.Is(err, io.EOF):
		r.endAll(captures.Reset, errServerStopped)
	default:
		r.endAll(captures.Reset, err)
	}
}

// explain returns the response that describes an error to the client, or nil if the connection must be closed
// instead.
func (r *Relay) explain(x *exchange, err error) *Answer {
	var bad *Malformed
	if errors.As(err, &bad) {
		err := errors.New("the server's response is malformed: " + bad.Reason)
		return &Answer{Status: http.StatusBadGateway, Text: "unwire: " + err.Error() + "\n", Err: err}
	}
	return r.config.Explain(x.route, x.rec, err, true)
}

// repeat sends a request a second time, on a new connection.
func (r *Relay) repeat(x *exchange) {
	s, err := r.connect(x)
	if err != nil {
		if a := r.config.Explain(x.route, x.rec, err, false); a != nil && !errors.Is(err, errEnded) {
			_ = r.answerInstead(x, a, true)
		}
		return
	}
	// Ignore the error: the goroutine that reads from the server gets it as well.
	_, _ = s.conn.Write(appendHead(nil, x.request, x.route))
	r.mu.Lock()
	ended := r.clientEnded
	r.mu.Unlock()
	if ended {
		_ = closeWrite(s.conn)
	}
}
