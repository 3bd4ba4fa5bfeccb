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

	// waits guards the fields up to canceled.
	waits sync.Mutex
	// ctx ends with the exchange. It is nil until a rule may have to wait.
	ctx context.Context
	// cancelCtx ends ctx; nil as long as ctx.
	cancelCtx context.CancelFunc
	// canceled means that cancel was called.
	canceled bool

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
	c.up = rewrite.Body{Dir: captures.Up, Exchange: e, Declared: x.request.length}
	c.down = rewrite.Body{Dir: captures.Down, Exchange: e, Declared: -1}
	if x.rec != nil {
		c.up.Recorder, c.down.Recorder = x.rec, x.rec
		e.Recorded(x.rec.ID())
	}
	return c
}

// context returns the context that ends with the exchange.
func (c *change) context() context.Context {
	c.waits.Lock()
	defer c.waits.Unlock()
	if c.ctx == nil {
		if c.ctx, c.cancelCtx = context.WithCancel(c.relay.ctx); c.canceled {
			c.cancelCtx()
		}
	}
	return c.ctx
}

// cancel ends context.
func (c *change) cancel() {
	c.waits.Lock()
	defer c.waits.Unlock()
	if c.canceled = true; c.cancelCtx != nil {
		c.cancelCtx()
	}
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
	if v := x.change.exchange.Request(); v.Action != rewrite.Pass {
		r.client.consume(len(x.request.raw))
		close(x.change.requestOver)
		return r.stopChanged(x, &rewrite.Stop{Verdict: v})
	}
	if s == nil {
		var err error
		if s, err = r.connect(x); err != nil {
			r.client.consume(len(x.request.raw))
			return r.failUnreached(x, err, 0)
		}
	}
	err := error(nil)
	if x.changesRequest() {
		err = r.sendChanged(x, s)
	} else {
		r.noteBody(x)
		r.client.consume(len(x.request.raw))
		if _, err = s.conn.Write(r.headOf(x, 0)); err != nil {
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
	c, out := x.change, &requestSink{exchange: x, server: s}
	in := &received{in: &r.client, body: &x.body, end: out}
	how := c.up.Watch()
	if how != rewrite.WatchNothing && x.request.expects && !x.request.chunked {
		// The head may have to wait for the body, so unwire asks the client to send it.
		if _, err := r.client.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return err
		}
		r.mu.Lock()
		x.continued = true
		r.mu.Unlock()
		how = rewrite.WatchNot
	}

	// The server may decide by the head whether it wants a body of unknown length.
	w := watch{received: in, rules: &c.up, how: how, head: len(x.request.raw), headFirst: how != rewrite.WatchBody || x.request.chunked}
	if over, err := w.run(); over {
		return err
	}
	out.headSent = w.head == 0
	r.client.consume(w.head + w.raw)
	if err := in.apply(c.context(), &c.up, out); err != nil {
		return err
	}
	return out.finish(x.body.trailers)
}

// A requestSink forwards a request whose body rules may change.
type requestSink struct {
	// exchange is the exchange of the request.
	exchange *exchange
	// server is the connection to which the request is forwarded.
	server *server
	// headSent means that the head was forwarded before Begin is called.
	headSent bool
	// framing is the way in which the forwarded body is delimited.
	framing outFraming
	// head is the head of a request with a known length, which is written together with the body; nil otherwise.
	head []byte
}

// scratch returns the memory for body content that arrives in several chunks.
func (w *requestSink) scratch() []byte { return w.server.relay.contentBuffer() }

// fill reads more bytes from the client.
func (w *requestSink) fill() error { return w.server.relay.readAhead() }

// note records body content that has arrived.
func (w *requestSink) note(content []byte) {
	r := w.server.relay
	r.record(w.exchange, captures.Up, content)
	w.exchange.change.receivedUp += int64(len(content))
	r.noteBody(w.exchange)
}

// forward writes received bytes to the server, with the changes to the head that the route demands.
func (w *requestSink) forward(p []byte, head, _ int) error {
	if head > 0 && !w.exchange.route.isVerbatim() {
		r := w.server.relay
		r.head = append(appendHead(r.head[:0], w.exchange.request, w.exchange.route), p[head:]...)
		p = r.head
	}
	return w.write(p)
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
	case w.headSent:
		return nil
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
	b, c := &a.body, x.change
	c.exchange.Response(a.status, a.header)
	c.down.Declared = -1
	if b.kind == bodyLength {
		c.down.Declared = a.length
	}
	out := &answerSink{server: s, exchange: x, body: b}
	in := &received{in: &s.in, body: b, end: out}
	how := c.down.Watch()
	if b.kind == bodyUntilClose {
		how = rewrite.WatchNot
	}
	w := watch{received: in, rules: &c.down, how: how, head: a.size, headFirst: how != rewrite.WatchBody}
	if over, err := w.run(); over {
		return err
	}
	out.headSent, out.head = w.head == 0, bytes.Clone(s.in.buffered()[:w.head])
	s.in.consume(w.head + w.raw)
	if err := in.apply(c.context(), &c.down, out); err != nil {
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

// An answerSink forwards a response whose body rules may change.
type answerSink struct {
	// server is the connection from which the response is received.
	server *server
	// exchange is the exchange of the response.
	exchange *exchange

	// headSent means that the head was forwarded before Begin is called.
	headSent bool
	// head is the head of the response as received, until it was forwarded.
	head []byte
	// body finds the end of the received body; after it, it has the trailers.
	body *body
	// framing is the way in which the forwarded body is delimited.
	framing outFraming
	// begun is the head of a response with a known length, which is written together with the body; nil otherwise.
	begun []byte
}

// scratch returns the memory for body content that arrives in several chunks.
func (w *answerSink) scratch() []byte {
	if s := w.server; len(s.content) < len(s.in.buf) {
		s.content = make([]byte, len(s.in.buf))
	}
	return w.server.content
}

// fill reads more bytes from the server. A body without a length ends where the connection ends; for any other, that is
// an error.
func (w *answerSink) fill() error {
	err := w.server.in.fill()
	switch {
	case err == io.EOF && w.body.kind == bodyUntilClose:
		w.body.done = true
		return nil
	case err == io.EOF:
		return w.body.incomplete()
	}
	return err
}

// note records body content that has arrived.
func (w *answerSink) note(content []byte) {
	w.server.relay.record(w.exchange, captures.Down, content)
	w.exchange.change.received += int64(len(content))
}

// forward writes received bytes to the client.
func (w *answerSink) forward(p []byte, head, content int) error {
	c := w.exchange.change
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return errEnded
	}
	if head > 0 {
		c.begun, c.left = true, c.down.Declared
		if w.body.kind == bodyChunked {
			c.downFraming = chunkedBody
		}
	}
	switch {
	case w.body.done:
		c.left = 0
	case c.left > 0:
		c.left -= int64(content)
	}
	return w.send(p, w.body.done)
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
	if w.headSent {
		return nil
	}
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
