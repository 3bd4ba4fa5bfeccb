package h1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// A change is the additional state of an exchange whose bodies rewriting rules may change.
type change struct {
	// relay is the relayed connection.
	relay *Relay

	// exchange contains the rules that apply to the exchange.
	exchange rewrite.Exchange

	// ctx ends with the exchange.
	ctx context.Context
	// cancel ends ctx.
	cancel context.CancelFunc

	// up applies the rules to the request body.
	up rewrite.Body
	// down applies the rules to the response body.
	down rewrite.Body

	// receivedUp is the number of bytes of the request body that were recorded. The goroutine that reads from the client
	// writes it, and others read it after requestOver.
	receivedUp int64
	// requestOver is closed when the request is not forwarded any more.
	requestOver chan struct{}

	// received is the number of bytes of the response body that were recorded. The goroutine that reads from the server
	// writes it, and others read it after responding.
	received int64
	// responding counts the responses that are being forwarded: 1 while there is one.
	responding sync.WaitGroup

	// mu guards the fields below, and is held while parts of the response are written to the client.
	mu sync.Mutex
	// cut means that a rule has ended the exchange.
	cut bool
	// begun means that the head of the response was forwarded.
	begun bool
	// left is the number of bytes of the response body that were not forwarded yet, or -1 if that is not known. After
	// begun, 0 means that the whole response was forwarded.
	left int64
	// downFraming is the way in which the forwarded response body is delimited.
	downFraming outFraming
}

// An outFraming is the way in which a changed body is sent: plain (its length is known, or it ends with the
// connection), or in chunks.
type outFraming uint8

const (
	// plainBody means that the content is sent as it is, and chunkedBody in chunked encoding.
	plainBody outFraming = iota
	chunkedBody
)

// newChange asks Config.Rewrite which rules apply to a request. It returns nil if none do.
func (r *Relay) newChange(x *exchange) *change {
	if r.config.Rewrite == nil || x.request.Version != "1.1" || x.request.upgrade || x.request.Method == http.MethodConnect {
		return nil
	}
	e := r.config.Rewrite(x.request, x.route)
	if e == nil {
		return nil
	}
	c := &change{relay: r, exchange: e, requestOver: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(r.ctx)
	c.up = rewrite.Body{Dir: captures.Up, Exchange: e, Declared: x.request.length}
	c.down = rewrite.Body{Dir: captures.Down, Exchange: e, Declared: -1}
	if x.rec != nil {
		c.up.Recorder, c.down.Recorder = x.rec, x.rec
		e.Recorded(x.rec.ID())
	}
	return c
}

// end releases resources after the exchange has ended.
func (c *change) end() {
	c.cancel()
	c.exchange.End()
}

// changesRequest reports whether the exchange has a request body that rules may change.
func (x *exchange) changesRequest() bool {
	return x.change != nil && (x.request.chunked || x.request.length >= 0)
}

// serveChanged relays an exchange whose bodies rules may change. s is an open connection to the server; if it is nil,
// a new one is opened.
func (r *Relay) serveChanged(x *exchange, s *server) error {
	r.client.consume(len(x.request.raw))
	if v := x.change.exchange.Request(); v.Action != rewrite.Pass {
		close(x.change.requestOver)
		return r.stopChanged(x, &rewrite.Stop{Verdict: v})
	}
	if s == nil {
		var err error
		if s, err = r.connect(x); err != nil {
			return r.failUnreached(x, err, 0)
		}
	}
	err := error(nil)
	if x.changesRequest() {
		err = r.sendChanged(x, s)
	} else {
		r.noteBody(x)
		if _, err = s.conn.Write(appendHead(nil, x.request, x.route)); err != nil {
			err = &sendError{err}
		}
	}
	close(x.change.requestOver)
	var stop *rewrite.Stop
	if errors.As(err, &stop) {
		return r.stopChanged(x, stop)
	}
	return r.endRequest(x, s, err)
}

// sendChanged forwards the head and the body of a request to s, as changed by rules.
//
// Errors: *rewrite.Stop; those of sendBody.
func (r *Relay) sendChanged(x *exchange, s *server) error {
	if x.request.expects && !x.request.chunked {
		// The head may have to wait for the body, so unwire asks the client to send it.
		if _, err := r.client.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return err
		}
		r.mu.Lock()
		x.continued = true
		r.mu.Unlock()
	}
	in := &requestBody{relay: r, exchange: x}
	out := &requestSink{exchange: x, server: s}
	if err := x.change.up.Run(x.change.ctx, in, out); err != nil {
		if in.err != nil {
			return in.err
		}
		return err
	}
	return out.finish(x.body.trailers)
}

// A requestBody reads the content of a request's body.
type requestBody struct {
	// relay is the relayed connection, whose client sends the body.
	relay *Relay
	// exchange is the exchange of the request.
	exchange *exchange

	// left are bytes of the body that were received but not returned by Read yet.
	left []byte
	// err is the error that ended reading, returned after left; nil before.
	err error
}

// Read returns the next received content, and records it.
func (b *requestBody) Read(p []byte) (int, error) {
	r, x := b.relay, b.exchange
	for len(b.left) == 0 {
		switch {
		case b.err != nil:
			return 0, b.err
		case x.body.done:
			return 0, io.EOF
		case len(r.client.buffered()) == 0:
			if b.err = r.readAhead(); b.err != nil {
				return 0, b.err
			}
		}
		n, content, bad := x.body.scan(r.client.buffered(), r.contentBuffer())
		r.record(x, captures.Up, content)
		x.change.receivedUp += int64(len(content))
		b.left = append(b.left[:0], content...)
		r.client.consume(n)
		if bad != nil {
			b.err = bad
		}
		r.noteBody(x)
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// A requestSink forwards a request whose body rules may change.
type requestSink struct {
	// exchange is the exchange of the request.
	exchange *exchange
	// server is the connection to which the request is forwarded.
	server *server
	// framing is the way in which the forwarded body is delimited.
	framing outFraming
	// head is the head of a request with a known length, which is written together with the body; nil otherwise.
	head []byte
}

// Begin forwards the head of the request. length is the length of the body in bytes, or one of the special
// values rewrite.Unknown and rewrite.Unchanged. After a length, the whole body follows at once.
func (w *requestSink) Begin(length int64) error {
	x := w.exchange
	to := *x.route
	if x.request.expects && !x.request.chunked {
		to.Drop = append([]string{"expect"}, to.Drop...)
	}
	if x.request.chunked || length == rewrite.Unknown {
		w.framing = chunkedBody
	}
	switch {
	case x.request.chunked || length == rewrite.Unchanged:
	case length == rewrite.Unknown:
		to.Drop = append([]string{"content-length"}, to.Drop...)
		to.Add = append(captures.Headers{{Name: "Transfer-Encoding", Value: "chunked"}}, to.Add...)
	default:
		to.Length = strconv.FormatInt(length, 10)
		w.head = appendHead(nil, x.request, &to)
		return nil
	}
	return w.write(appendHead(nil, x.request, &to))
}

// Write forwards content of the changed body.
func (w *requestSink) Write(p []byte) (int, error) {
	out := appendBody(w.head, w.framing, p)
	w.head = nil
	if err := w.write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write writes p to the server; errors are of type *sendError.
func (w *requestSink) write(p []byte) error {
	if _, err := w.server.conn.Write(p); err != nil {
		return &sendError{err}
	}
	return nil
}

// finish forwards the end of the request body.
func (w *requestSink) finish(trailers captures.Headers) error {
	if w.framing != chunkedBody {
		return nil
	}
	return w.write(appendEnd(nil, trailers))
}

// appendBody appends body content to dst, as a chunk if f requires that.
func appendBody(dst []byte, f outFraming, p []byte) []byte {
	if f != chunkedBody {
		return append(dst, p...)
	}
	if len(p) == 0 {
		return dst
	}
	dst = append(strconv.AppendInt(dst, int64(len(p)), 16), "\r\n"...)
	return append(append(dst, p...), "\r\n"...)
}

// appendEnd appends the last chunk and the trailers of a chunked body.
func appendEnd(dst []byte, trailers captures.Headers) []byte {
	dst = append(dst, "0\r\n"...)
	for _, f := range trailers {
		dst = append(dst, f.Name+": "+f.Value+"\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// forwardChanged forwards the head and the body of the response a, as changed by rules.
//
// Errors: *rewrite.Stop; those of forwardBody.
func (s *server) forwardChanged(x *exchange, a *response) error {
	b := &a.body
	c := x.change
	head := bytes.Clone(s.in.buffered()[:a.size])
	s.in.consume(a.size)
	c.exchange.Response(a.status, a.header)
	c.down.Declared = -1
	if b.kind == bodyLength {
		c.down.Declared = a.length
	}
	in := &answerBody{server: s, exchange: x, body: b}
	out := &answerSink{server: s, exchange: x, head: head, body: b}
	if err := c.down.Run(c.ctx, in, out); err != nil {
		if in.err != nil {
			return in.err
		}
		return err
	}
	return out.finish()
}

// forwardBodiless forwards the response a unchanged, which has no body, such as one to HEAD, and which the rules
// therefore cannot change.
//
// Errors: those of forwardBody.
func (s *server) forwardBodiless(x *exchange, a *response) error {
	c := x.change
	c.exchange.Response(a.status, a.header)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return errEnded
	}
	c.begun, c.left = true, 0
	return s.forwardBody(x, a)
}

// An answerBody reads the content of a response body, without its chunked encoding.
type answerBody struct {
	// server is the connection from which the response is received.
	server *server
	// exchange is the exchange of the response.
	exchange *exchange
	// body finds the end of the received body.
	body *body

	// left are bytes of the body that were received but not returned by Read yet.
	left []byte
	// err is the error that ended reading, returned after left; nil before.
	err error
}

// Read returns the next received content, and records it.
func (r *answerBody) Read(p []byte) (int, error) {
	s := r.server
	for len(r.left) == 0 {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.body.done:
			return 0, io.EOF
		// A body without a length ends where the connection ends; for any other, that is an error.
		case len(s.in.buffered()) == 0:
			switch err := s.in.fill(); {
			case err == io.EOF && r.body.kind == bodyUntilClose:
				r.body.done = true
				return 0, io.EOF
			case err == io.EOF:
				r.err = r.body.incomplete()
				return 0, r.err
			case err != nil:
				r.err = err
				return 0, err
			}
		}

		// Rules get the content without the chunked encoding. The capture stores it before any change.
		if len(s.content) < len(s.in.buf) {
			s.content = make([]byte, len(s.in.buf))
		}
		n, content, bad := r.body.scan(s.in.buffered(), s.content)
		s.relay.record(r.exchange, captures.Down, content)
		r.exchange.change.received += int64(len(content))
		r.left = append(r.left[:0], content...)
		s.in.consume(n)
		if bad != nil {
			r.err = bad
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// An answerSink forwards a response whose body rules may change.
type answerSink struct {
	// server is the connection from which the response is received.
	server *server
	// exchange is the exchange of the response.
	exchange *exchange

	// head is the head of the response as received, until it was forwarded.
	head []byte
	// body finds the end of the received body; after it, it has the trailers.
	body *body
	// framing is the way in which the forwarded body is delimited.
	framing outFraming
	// begun is the head of a response with a known length, which is written together with the body; nil otherwise.
	begun []byte
}

// Begin forwards the head of the response. length is the length of the body in bytes, or one of the special
// values rewrite.Unknown and rewrite.Unchanged. After a length, the whole body follows at once.
func (w *answerSink) Begin(length int64) error {
	c, left := w.exchange.change, int64(-1)
	switch {
	case w.body.kind == bodyChunked:
		w.framing = chunkedBody
	case w.body.kind == bodyUntilClose:
	case length == rewrite.Unknown:
		w.framing = chunkedBody
		w.head = withLengthLine(w.head, "Transfer-Encoding: chunked")
	case length == rewrite.Unchanged:
		left = c.down.Declared
	default:
		left = length
		w.head = withLengthLine(w.head, "Content-Length: "+strconv.FormatInt(length, 10))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return errEnded
	}
	c.begun, c.left, c.downFraming = true, left, w.framing
	if length > 0 {
		w.begun = w.head
		return nil
	}
	return w.send(w.head, left == 0)
}

// withLengthLine returns a response head with its Content-Length line replaced by line, unless that has the
// same value already.
func withLengthLine(head []byte, line string) []byte {
	var out []byte
	for old := range strings.SplitAfterSeq(string(head), "\r\n") {
		name, value, _ := strings.Cut(old, ":")
		if strings.EqualFold(name, "content-length") && !strings.HasSuffix(line, ": "+strings.TrimSpace(value)) {
			old = line + "\r\n"
		}
		out = append(out, old...)
	}
	return out
}

// Write forwards content of the changed body.
func (w *answerSink) Write(p []byte) (int, error) {
	c := w.exchange.change
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return 0, errEnded
	}
	last := false
	if c.left > 0 {
		c.left = max(0, c.left-int64(len(p)))
		last = c.left == 0
	}
	out := appendBody(w.begun, w.framing, p)
	w.begun = nil
	if err := w.send(out, last); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send writes bytes to the client. last means that these are the last bytes of the response.
func (w *answerSink) send(p []byte, last bool) error {
	if last {
		w.server.noteDelivery(w.exchange, true)
	}
	if _, err := w.server.relay.client.conn.Write(p); err != nil {
		w.server.noteDelivery(w.exchange, false)
		return &clientError{err}
	}
	return nil
}

// finish forwards the end of the response body.
func (w *answerSink) finish() error {
	c := w.exchange.change
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return errEnded
	}
	c.left = 0
	if w.framing != chunkedBody {
		return w.send(nil, true)
	}
	return w.send(appendEnd(nil, w.body.trailers), true)
}
