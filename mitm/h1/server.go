package h1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"unwire/captures"
)

// A server is a connection to a server, which has the exchanges of one client.
type server struct {
	relay *Relay
	key   any
	bound bool
	conn  net.Conn

	// Its reader alone uses these. content has what came in several chunks.
	in      input
	content []byte

	// exchange is the one that runs on the connection, served says that others did, and
	// closed that none will any more. The relay's mutex guards them.
	exchange *exchange
	served   bool
	closed   bool
}

// close closes the connection; the relay's mutex is held.
func (s *server) close() {
	s.closed = true
	_ = s.conn.Close()
}

// run forwards answers until the connection has ended.
func (s *server) run() {
	for {
		if err := s.relayAnswer(); err != nil {
			if !errors.Is(err, errHandedOver) {
				s.relay.loseServer(s, err)
			}
			return
		}
	}
}

// current returns the exchange that waits for an answer, or nil.
func (s *server) current() *exchange {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if x := s.exchange; x != nil && !x.answered && !s.closed {
		return x
	}
	return nil
}

// readHead reads more of an answer's head.
func (s *server) readHead() error {
	if err := s.in.fill(); err != nil {
		return err
	}
	if s.current() == nil {
		return errUnsolicited
	}
	return nil
}

// relayAnswer forwards an answer, with nothing held back.
//
// Errors: *Malformed; *refusedError; *clientError; those of the server's connection.
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
	b := a.bodyOf(x.request.Method)
	if !s.beginAnswer(x, a, &b) {
		return errEnded
	}
	if x.rec != nil {
		x.rec.Response(a.status, a.header)
	}
	if err := s.forwardBody(x, a, &b); err != nil {
		return err
	}
	if x.rec != nil && len(b.trailers) > 0 {
		x.rec.Trailers(captures.Down, b.trailers)
	}
	if len(s.in.buffered()) > 0 {
		s.relay.mu.Lock()
		x.persistent = false // nobody asked for what follows
		s.relay.mu.Unlock()
	}
	s.relay.finishHalf(x, &x.answered)
	return nil
}

// inform forwards an informational answer.
func (s *server) inform(x *exchange, a *response) error {
	s.relay.mu.Lock()
	refused := x.refused
	x.informed, x.continued = true, x.continued || a.status == http.StatusContinue
	s.relay.mu.Unlock()
	if refused {
		return errEnded
	}
	return s.forward(a.size)
}

// forward writes the next n bytes of the server's to the client.
func (s *server) forward(n int) error {
	_, err := s.relay.client.conn.Write(s.in.buffered()[:n])
	s.in.consume(n)
	if err != nil {
		return &clientError{err}
	}
	return nil
}

// beginAnswer reports whether the client may be sent an answer.
func (s *server) beginAnswer(x *exchange, a *response, b *body) bool {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if x.refused {
		return false
	}
	x.answering = true
	x.persistent = x.request.persistent && a.persistent && b.kind != bodyUntilClose

	// A client that was not told to send its body may not send it, and a server may
	// take what comes next for a request.
	if x.request.expects && !x.sent && !x.continued {
		x.persistent = false
	}
	return true
}

// forwardBody forwards the head and the body of an answer, in as few writes as they
// came.
func (s *server) forwardBody(x *exchange, a *response, b *body) error {
	head := a.size
	for {
		if len(s.content) < len(s.in.buf) && b.kind == bodyChunked {
			s.content = make([]byte, len(s.in.buf))
		}
		n, content, bad := b.scan(s.in.buffered()[head:], s.content)
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

// noteDelivery notes that the last of an answer is being written, or was not.
func (s *server) noteDelivery(x *exchange, delivered bool) {
	s.relay.mu.Lock()
	x.delivered, x.afterEnd = delivered, s.relay.clientEnded
	s.relay.mu.Unlock()
}

// handOver gives both connections to whoever serves the new protocol. The reader of
// the client does that.
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
	_ = r.client.conn.SetReadDeadline(time.Unix(1, 0))
	r.changed.Broadcast()
	return errHandedOver
}

// A refusedError is an answer that is not the server's.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// A clientError says that the client accepts nothing more.
type clientError struct{ err error }

func (e *clientError) Error() string { return e.err.Error() }

// loseServer ends a connection to a server, and what ran on it.
func (r *Relay) loseServer(s *server, err error) {
	r.mu.Lock()
	x, known := s.exchange, !s.closed
	s.close()
	if i := indexOf(r.servers, s); i >= 0 {
		r.servers = append(r.servers[:i], r.servers[i+1:]...)
	}
	if x == nil || r.running != x {
		if s.bound && known && !r.ended {
			r.beginClose()
		}
		r.mu.Unlock()
		return
	}
	got := len(s.in.buffered()) > 0 || x.informed
	repeats := !x.answering && !got && s.served && x.repeatable && !errors.As(err, new(*clientError))
	answered, answering := x.answered, x.answering
	x.repeatable, x.persistent = false, false
	r.mu.Unlock()
	switch {
	case answered:
		// It has no use for the rest of the request.
		r.finishHalf(x, &x.sent)
	case repeats:
		r.repeat(x)
	case errors.As(err, new(*clientError)):
		r.endAll(captures.Canceled, errClientGone)
	default:
		r.failBroken(x, err, answering, s.served && !got)
	}
}

func indexOf(servers []*server, s *server) int {
	for i, other := range servers {
		if other == s {
			return i
		}
	}
	return -1
}

// failBroken ends an exchange whose server failed. unanswered says that a connection
// which had served others ended without an answer.
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

// explain returns the answer that words an error, or nil.
func (r *Relay) explain(x *exchange, err error) *Answer {
	var bad *Malformed
	if errors.As(err, &bad) {
		err := errors.New("the server's answer is malformed: " + bad.Reason)
		return &Answer{Status: http.StatusBadGateway, Text: "unwire: " + err.Error() + "\n", Err: err}
	}
	return r.config.Explain(x.route, x.rec, err, true)
}

// repeat sends a request once more, on a new connection.
func (r *Relay) repeat(x *exchange) {
	s, err := r.connect(x)
	if err != nil {
		if a := r.config.Explain(x.route, x.rec, err, false); a != nil && !errors.Is(err, errEnded) {
			_ = r.answerInstead(x, a, true)
		}
		return
	}
	// Its reader meets the error.
	_, _ = s.conn.Write(appendHead(nil, x.request, x.route))
	r.mu.Lock()
	ended := r.clientEnded
	r.mu.Unlock()
	if ended {
		_ = closeWrite(s.conn)
	}
}
