package mitm

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/mitm/upstream"
)

const (
	// headDelay is how long the head of a response with a known length waits for the body, so that both leave in
	// one packet.
	headDelay = 2 * time.Millisecond
	// uploadGracePeriod is how long a request's body may continue after the end of the response, as in
	// net/http's client.
	uploadGracePeriod = 50 * time.Millisecond
)

// relay forwards a request to the server t, and its response, without delay and records both. shown is the
// recorded URL. After an error, it resets the connection, so that the client cannot mistake a truncated
// response for a complete one.
func (p *Proxy) relay(w http.ResponseWriter, r *http.Request, t target, shown *url.URL) {
	if !p.beginRunning() {
		panic(http.ErrAbortHandler)
	}
	defer p.endRunning()
	if r.ProtoMajor >= 2 && awaitsContinue(r.Body) {
		r.Header.Set("Expect", "100-continue")
	}
	x := p.beginExchange(r, t, shown)
	if c, ok := r.Context().Value(clientKey{}).(*clientConn); ok && c.unreachedErr != nil {
		// A new connection makes the client try again.
		w.Header().Set("Connection", "close")
		p.answerFailure(w, x, shown, c.unreachedErr)
		return
	}

	// The request ends with the client's, or with the recording.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	rc := http.NewResponseController(w)
	early := &informationalRelay{w: w, x: x}
	out := p.upstreamRequest(early.trace(ctx, x), r, x, t, shown)
	o := p.origins.get(t)
	o.gotRequest.Store(true)

	// Informational responses must not be sent after the final one.
	res, err := o.roundTrip(out, mayRepeat(r))
	early.stop()
	if err != nil {
		p.answerFailure(w, x, shown, err)
		return
	}
	defer res.Body.Close()
	x.recordResponse(res)
	d := &responseRelay{ctx: ctx, w: w, rc: rc, x: x, res: res, buf: p.buffers.Get().(*[chunkSize]byte)}
	defer p.buffers.Put(d.buf)
	if err := d.run(); err != nil {
		x.endWithError(err)
		panic(http.ErrAbortHandler)
	}
	if tap, ok := out.Body.(*recordedBody); ok && !tap.awaitEnd(0) {
		// The server has sent its response, but may still be reading.
		_ = rc.Flush()
		tap.awaitEnd(uploadGracePeriod)
	}
	x.end(captures.Complete, nil)
}

// upstreamRequest returns the request that is sent to the server.
func (p *Proxy) upstreamRequest(ctx context.Context, r *http.Request, x *exchange, t target, shown *url.URL) *http.Request {
	u := *shown
	u.Scheme, u.Host, u.User = t.scheme, t.addr, nil
	out := (&http.Request{
		Method: r.Method, URL: &u, Host: shown.Host,
		Header: forwardHeader(r.Header), ContentLength: r.ContentLength,
		Body: http.NoBody, Trailer: r.Trailer, // filled in while the body is read
		ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if _, ok := out.Header["User-Agent"]; !ok {
		// Otherwise net/http adds its own.
		out.Header["User-Agent"] = nil
	}
	if r.ContentLength != 0 {
		out.Body = &recordedBody{ReadCloser: r.Body, x: x, r: r, ended: make(chan struct{})}
	}
	return out
}

// answerFailure responds to a request for which there is no response because of err. If the server was not
// reached, it sends an error response; otherwise it resets the connection.
func (p *Proxy) answerFailure(w http.ResponseWriter, x *exchange, shown *url.URL, err error) {
	var viaProxy *upstream.Error
	var refused *certificateError
	switch {
	case errors.As(err, &viaProxy):
		// Remove what net/http adds to the error.
		err = viaProxy
		x.clearServerReached()
	case errors.As(err, &refused):
		err = refused
		x.clearServerReached()
		x.record(func(rec captures.Recording) { rec.Connection(refused.recorded(), "") })
	}

	// If the server has received the request, its failure must look like one.
	x.mu.Lock()
	reached := x.serverReached
	x.mu.Unlock()
	x.endWithError(err)
	if reached || x.ctx.Err() != nil || p.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	p.log.Warn("server not reached", "host", shown.Host, "err", err)
	status, text := failureText(shown.Host, err)
	if status == http.StatusLoopDetected {
		answerLoop(w, text)
		return
	}
	http.Error(w, text, status)
}

// A responseRelay forwards a response to the client.
type responseRelay struct {
	// ctx ends with the client's request, or with the recording.
	ctx context.Context

	// w writes the response to the client.
	w http.ResponseWriter
	// rc controls w, for example to flush it.
	rc *http.ResponseController
	// x records the exchange.
	x *exchange
	// res is the server's response.
	res *http.Response
	// buf is a buffer for the body.
	buf *[chunkSize]byte

	// mu serializes the timer for the head and the body, which both write.
	mu sync.Mutex

	// sent means that the head or a part of the body was sent to the client.
	sent bool
}

// run forwards the head, the body and the trailers of the response.
func (d *responseRelay) run() error {
	announced := d.writeHead()
	bodiless := d.res.ContentLength == 0 || d.res.Request.Method == http.MethodHead
	switch {
	case bodiless && len(d.res.Trailer) == 0:
		// The head ends the stream, as it did at the server.
	case d.res.ContentLength > 0 && d.res.ContentLength <= chunkSize && !bodiless:
		timer := time.AfterFunc(headDelay, d.flushHead)
		defer func() {
			timer.Stop()
			// The timer may be running: wait for it.
			d.markSent()
		}()
	default:
		if err := d.rc.Flush(); err != nil {
			return err
		}
	}
	if err := d.copyBody(); err != nil {
		return err
	}
	d.writeTrailers(announced)
	return nil
}

// writeHead writes the status and the headers without flushing them. It returns the announced trailers.
func (d *responseRelay) writeHead() map[string]bool {
	h := d.w.Header()
	for name, values := range forwardHeader(d.res.Header) {
		h[name] = values
	}
	h.Del("Te")
	// Prevent net/http from adding these.
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := h[name]; !ok {
			h[name] = nil
		}
	}
	if _, ok := h["Content-Length"]; !ok && d.res.ProtoMajor >= 2 {
		h["Content-Length"] = nil
	}

	// Trailers must be announced in the headers.
	announced := make(map[string]bool, len(d.res.Trailer))
	for name := range d.res.Trailer {
		announced[name] = true
	}
	if len(announced) > 0 {
		h.Set("Trailer", strings.Join(slices.Sorted(maps.Keys(announced)), ", "))
	}
	d.w.WriteHeader(d.res.StatusCode)
	return announced
}

// flushHead sends the head to the client, unless something was sent already.
func (d *responseRelay) flushHead() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.sent {
		d.sent = true
		_ = d.rc.Flush() // the next write returns the error
	}
}

// markSent records that the head is sent together with a part of the body.
func (d *responseRelay) markSent() {
	d.mu.Lock()
	d.sent = true
	d.mu.Unlock()
}

// copyBody forwards and records the body as it arrives. The last part of a body with a known length is flushed
// by the end of the stream.
func (d *responseRelay) copyBody() error {
	left := d.res.ContentLength
	for {
		n, err := d.res.Body.Read(d.buf[:])
		if n > 0 {
			d.x.recordChunk(captures.Down, d.buf[:n])
			d.markSent()
			if _, werr := d.w.Write(d.buf[:n]); werr != nil {
				return werr
			}
			if left -= int64(n); left != 0 && err == nil {
				if werr := d.rc.Flush(); werr != nil {
					return werr
				}
			}
		}
		if err == io.EOF && left != 0 {
			// A server that receives a cancellation may end its response as if it were complete.
			return d.ctx.Err()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			// Send the bytes before the error to the client.
			_ = d.rc.Flush()
			return err
		}
	}
}

// writeTrailers forwards and records the trailers, announced or not.
func (d *responseRelay) writeTrailers(announced map[string]bool) {
	for name, values := range d.res.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		d.w.Header()[name] = values
	}
	d.x.recordTrailers(captures.Down, d.res.ProtoMajor, d.res.Trailer)
}

// An informationalRelay forwards informational (1xx) responses to the client, until the final response.
type informationalRelay struct {
	// w writes to the client.
	w http.ResponseWriter
	// x is the exchange of the response.
	x *exchange
	// mu guards done, and is locked during each write.
	mu sync.Mutex
	// done means that the final response has begun, so that no more informational responses are forwarded.
	done bool
}

// trace returns a context for the request to the server, with which send is called for each informational
// response.
func (e *informationalRelay) trace(ctx context.Context, x *exchange) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:        func(info httptrace.GotConnInfo) { x.recordConnection(info.Conn) },
		Got1xxResponse: e.send,
	})
}

// send forwards an informational response, unless stop was called.
func (e *informationalRelay) send(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The request has failed meanwhile.
	if e.done {
		return nil
	}
	if status == http.StatusContinue && !e.x.firstContinue() {
		// net/http has sent it already.
		return nil
	}
	h := e.w.Header()
	for name, values := range forwardHeader(http.Header(header)) {
		h[name] = values
	}
	e.w.WriteHeader(status)
	clear(h)
	return nil
}

// stop makes send do nothing, because the final response follows.
func (e *informationalRelay) stop() {
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
}
