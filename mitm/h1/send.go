package h1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
)

// serve forwards one request, while the goroutine that reads from the server forwards the response.
//
// Errors: any error means that no further request is read from the client.
func (r *Relay) serve(q *Request, to *Route) error {
	if !r.config.Admit() {
		return r.drop()
	}
	x := &exchange{request: q, route: to, body: q.bodyOf(), repeatable: r.mayRepeat(q)}
	r.mu.Lock()

	// The relay may have ended since the request was read.
	if r.ended || r.closing {
		r.mu.Unlock()
		r.config.Release()
		return errEnded
	}
	s := r.takeServer(to.Key)
	var conn net.Conn
	if s != nil {
		conn = s.conn
		s.exchange, x.server = x, s
	}

	if !to.Unrecorded {
		x.rec = r.config.Begin(q, to, conn)
	}
	x.change = r.newChange(x)
	r.running = x
	r.mu.Unlock()
	if x.change != nil {
		return r.serveChanged(x, s)
	}

	// Check the part of the body that was already received before anything is forwarded.
	r.client.consume(len(q.raw))
	n, content, bad := x.body.scan(r.client.buffered(), r.contentBuffer())
	if bad != nil {
		return r.refuseRunning(x, bad)
	}
	r.record(x, captures.Up, content)
	r.noteBody(x)
	if s == nil {
		var err error
		if s, err = r.connect(x); err != nil {
			return r.failUnreached(x, err, n)
		}
	}

	// The head and the received part of the body leave in one write.
	_, err := s.conn.Write(r.headOf(x, n))
	r.client.consume(n)
	if err != nil {
		err = &sendError{err}
	} else {
		err = r.sendBody(x, s)
	}
	return r.endRequest(x, s, err)
}

// noteBody updates the exchange if all of its request's body was received.
func (r *Relay) noteBody(x *exchange) {
	if !x.body.done {
		return
	}
	if x.rec != nil && len(x.body.trailers) > 0 {
		x.rec.Trailers(captures.Up, x.body.trailers)
	}
	r.mu.Lock()
	x.sent = true
	r.mu.Unlock()
}

// drop closes the client's connection without a response.
func (r *Relay) drop() error {
	r.endAll(captures.Canceled, errClientGone)
	return errEnded
}

// contentBuffer returns the buffer for body content that arrives in several chunks.
func (r *Relay) contentBuffer() []byte {
	if len(r.content) < len(r.client.buf) {
		r.content = make([]byte, len(r.client.buf))
	}
	return r.content
}

// record records body content of an exchange, if the exchange is recorded.
func (r *Relay) record(x *exchange, d captures.Direction, content []byte) {
	if x.rec != nil && len(content) > 0 {
		x.rec.Chunk(d, content)
	}
}

// connect opens a connection to the server of an exchange, and starts the goroutine that reads from it.
func (r *Relay) connect(x *exchange) (*server, error) {
	conn, err := x.route.Dial(r.ctx)
	if err != nil {
		return nil, err
	}
	s := &server{relay: r, key: x.route.Key, bound: x.route.Bound, conn: conn, in: newInput(conn), exchange: x}
	r.mu.Lock()
	// The exchange may have ended during the dial.
	if r.ended || r.running != x {
		r.mu.Unlock()
		_ = conn.Close()
		return nil, errEnded
	}
	x.server = s
	// Close the connection that was unused for the longest time.
	if len(r.servers) == maxServers {
		r.servers[maxServers-1].close()
		r.servers = r.servers[:maxServers-1]
	}
	r.servers = slices.Insert(r.servers, 0, s)
	r.mu.Unlock()
	if x.rec != nil {
		r.config.Connected(x.rec, conn)
	}
	go s.run()
	return s, nil
}

// headOf returns the request head as it is forwarded, followed by the first n buffered bytes of the body, so
// that both are sent with one write.
func (r *Relay) headOf(x *exchange, n int) []byte {
	// An unchanged head is still in the buffer, directly before the body.
	if in := &r.client; x.route.isVerbatim() {
		return in.buf[in.r-len(x.request.raw) : in.r+n]
	}
	r.head = appendHead(r.head[:0], x.request, x.route)
	return append(r.head, r.client.buffered()[:n]...)
}

// appendHead appends the head of a request to p, with the changes that the route demands.
func appendHead(p []byte, q *Request, to *Route) []byte {
	if to.isVerbatim() {
		return append(p, q.raw...)
	}

	// Rewrite only the request line and the headers that the route changes; all other bytes stay as
	// received.
	line, rest, _ := strings.Cut(q.raw, "\r\n")
	target := q.Target
	if to.Target != "" {
		target = to.Target
	}
	p = append(p, q.Method+" "+target+line[len(q.Method)+1+len(q.Target):]+"\r\n"...)
	if to.Host != "" && q.hosts == 0 {
		p = append(p, "Host: "+to.Host+"\r\n"...)
	}
	for line = range strings.SplitAfterSeq(rest[:len(rest)-2], "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		switch {
		case name == "" || slices.Contains(to.Drop, strings.ToLower(name)):
		case to.Length != "" && strings.EqualFold(name, "content-length"):
			p = append(p, name+": "+to.Length+"\r\n"...)
		case to.Host != "" && to.Host != q.host && strings.EqualFold(name, "host"):
			p = append(p, name+": "+to.Host+"\r\n"...)
		default:
			p = append(p, line...)
		}
	}
	for _, f := range to.Add {
		p = append(p, f.Name+": "+f.Value+"\r\n"...)
	}
	return append(p, "\r\n"...)
}

// sendBody forwards the rest of a request's body to s as it arrives.
//
// Errors: *Malformed; *sendError if the server accepts no more; those of the client's connection.
func (r *Relay) sendBody(x *exchange, s *server) error {
	for !x.body.done {
		if err := r.readAhead(); err != nil {
			return err
		}
		n, content, bad := x.body.scan(r.client.buffered(), r.contentBuffer())
		r.record(x, captures.Up, content)
		r.noteBody(x)
		_, err := s.conn.Write(r.client.buffered()[:n])
		r.client.consume(n)
		switch {
		case bad != nil:
			return bad
		case err != nil:
			return &sendError{err}
		}
	}
	return nil
}

// A sendError means that the server accepts no more bytes of a request.
type sendError struct {
	// err is the error of writing to the server.
	err error
}

// Error returns the text of the underlying error.
func (e *sendError) Error() string { return e.err.Error() }

// endRequest ends the sending of a request. err is the reason why not all of it was sent; nil if all was sent.
func (r *Relay) endRequest(x *exchange, s *server, err error) error {
	if err == nil {
		r.finishHalf(x, &x.sent)
		return nil
	}
	if bad, ok := errors.AsType[*Malformed](err); ok {
		return r.refuseRunning(x, bad)
	}
	if errors.As(err, new(*sendError)) {
		return r.awaitAnswer(x, s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.closing || r.running != x {
		return errEnded
	}
	// After EOF, stop tells the server with a half-close, and it may still answer.
	return err
}

// awaitAnswer waits for the end of an exchange whose server accepts nothing more. The server may already have
// responded; the goroutine that reads from it ends the exchange or repeats it.
func (r *Relay) awaitAnswer(x *exchange, s *server) error {
	r.mu.Lock()
	x.abandoned = !x.sent
	answered := x.answered
	_ = s.conn.SetReadDeadline(time.Now().Add(serverLinger))
	r.mu.Unlock()
	if answered {
		r.finishHalf(x, &x.answered)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running == x && !r.ended && !r.closing {
		r.changed.Wait()
	}
	if r.ended || r.closing || !x.sent {
		return errEnded
	}
	return nil
}

// An Answer is a response that the relay itself sends, instead of a server's.
type Answer struct {
	// Status is the response's status code.
	Status int
	// Header are the response's header fields.
	Header captures.Headers
	// Text is the body of the response.
	Text string

	// Err is the error that is recorded for the exchange.
	Err error
	// Unreached means that nothing was sent to the server.
	Unreached bool
}

// writeAnswer sends the relay's own response to the client. reason is the reason phrase of the status line;
// closes means that the connection is closed afterwards.
func (r *Relay) writeAnswer(a *Answer, reason, method string, closes bool) error {
	p := []byte("HTTP/1.1 " + strconv.Itoa(a.Status) + " " + reason + "\r\nContent-Type: text/plain; charset=utf-8\r\n")
	for _, f := range a.Header {
		p = append(p, f.Name+": "+f.Value+"\r\n"...)
	}
	if closes {
		p = append(p, "Connection: close\r\n\r\n"...)
	} else {
		p = append(p, "Content-Length: "+strconv.Itoa(len(a.Text))+"\r\n\r\n"...)
	}
	if method != http.MethodHead {
		p = append(p, a.Text...)
	}
	_, err := r.client.conn.Write(p)
	return err
}

// writeRefusal responds to a malformed request, with the reason in the status line, as the server of net/http
// does.
func (r *Relay) writeRefusal(method string, bad *Malformed) {
	reason := http.StatusText(bad.Status) + ": " + bad.Reason
	a := &Answer{Status: bad.Status, Text: strconv.Itoa(bad.Status) + " " + reason}
	// An error is ignored, because the connection ends in any case.
	_ = r.writeAnswer(a, reason, method, true)
}

// refuse responds with an error to a malformed request, and closes the connection.
func (r *Relay) refuse(q *Request, bad *Malformed) {
	r.config.Refused(q, bad)
	r.writeRefusal(q.Method, bad)
	r.mu.Lock()
	r.beginClose()
	r.mu.Unlock()
	r.lingerClient()
	r.endAll(captures.Canceled, errClientGone)
}

// refuseRunning ends an exchange whose request body is malformed, with an error response.
func (r *Relay) refuseRunning(x *exchange, reason error) error {
	var bad *Malformed
	_ = errors.As(reason, &bad)
	r.mu.Lock()
	if r.running != x {
		r.mu.Unlock()
		return errEnded
	}
	answering := x.answering
	x.refused = true
	r.running = nil
	if x.server != nil {
		x.server.close()
	}
	r.mu.Unlock()
	// An answer that has begun cannot be replaced.
	if !answering {
		r.writeRefusal(x.request.Method, bad)
	}
	r.endExchange(x, captures.Failed, RefusedError(bad))
	if answering {
		r.endAll(captures.Failed, nil)
		return errEnded
	}
	r.mu.Lock()
	r.beginClose()
	r.mu.Unlock()
	return errEnded
}

// RefusedError returns the error that is recorded for a refused request.
func RefusedError(bad *Malformed) error {
	return errors.New("unwire refused the request: " + bad.Reason)
}

// failUnreached responds with an error to a request whose server cannot be connected to because of err. The
// first n buffered bytes belong to the request's body.
func (r *Relay) failUnreached(x *exchange, err error, n int) error {
	if r.ctx.Err() != nil || errors.Is(err, errEnded) {
		r.endAll(captures.Incomplete, context.Cause(r.ctx))
		return errEnded
	}
	r.client.consume(n)
	if a := r.config.Explain(x.route, x.rec, err, false); a != nil {
		return r.answerInstead(x, a, x.body.done)
	}
	r.endAll(captures.Failed, err)
	return errEnded
}

// answerInstead sends the relay's own response to an exchange for which the server sent none. If keep is true,
// it keeps the client's connection open where possible.
func (r *Relay) answerInstead(x *exchange, a *Answer, keep bool) error {
	r.mu.Lock()
	keep = keep && x.request.persistent && !r.draining && !r.clientEnded
	if r.running != x {
		r.mu.Unlock()
		return errEnded
	}
	x.refused = true
	r.mu.Unlock()
	err := r.writeAnswer(a, http.StatusText(a.Status), x.request.Method, !keep)
	// The exchange may have ended during the write.
	r.mu.Lock()
	if r.running != x {
		r.mu.Unlock()
		return errEnded
	}
	r.endRunning()
	if keep && err == nil {
		r.changed.Broadcast()
	} else {
		r.beginClose()
	}
	r.mu.Unlock()
	o := captures.Reset
	if a.Unreached {
		o = captures.Failed
	}
	r.endExchange(x, o, a.Err)
	if keep && err == nil {
		return nil
	}
	return errEnded
}
