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
	// headDelay is how long the head of a response with a known length waits
	// for its body, so that a small answer leaves in one piece.
	headDelay = 2 * time.Millisecond
	// lateBody is how long a request's body may go on after the answer's end:
	// as long as net/http's client goes on sending it over HTTP/1.
	lateBody = 50 * time.Millisecond
)

// relay passes a request on to its target and the response back, each byte
// when it comes, and records both. An error on the way ends in a reset, never
// in what looks like a clean end.
func (p *Proxy) relay(w http.ResponseWriter, r *http.Request, t target, shown *url.URL) {
	if !p.admitExchange() {
		panic(http.ErrAbortHandler)
	}
	defer p.releaseExchange()
	if r.ProtoMajor >= 2 && expectsContinue(r.Body) {
		r.Header.Set("Expect", "100-continue")
	}
	x := p.beginExchange(r, t, shown)
	if c, ok := r.Context().Value(clientKey{}).(*clientConn); ok && c.unreachedErr != nil {
		// A new connection tries again.
		w.Header().Set("Connection", "close")
		p.answerFailure(w, x, shown, c.unreachedErr)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	rc := http.NewResponseController(w)
	early := &earlyHints{w: w, x: x}
	out := p.upstreamRequest(early.trace(ctx, x), r, x, t, shown)
	o := p.origins.get(t)
	o.gotRequest.Store(true)
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
		x.endBroken(err)
		panic(http.ErrAbortHandler)
	}
	if tap, ok := out.Body.(*bodyTap); ok && !tap.awaitEnd(0) {
		// The server has answered in full, but may still be reading.
		_ = rc.Flush()
		tap.awaitEnd(lateBody)
	}
	x.end(captures.Complete, nil)
}

// upstreamRequest returns the request as it is sent to the server.
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
		out.Header["User-Agent"] = nil // else net/http adds its own
	}
	if r.ContentLength != 0 {
		out.Body = &bodyTap{ReadCloser: r.Body, x: x, r: r, ended: make(chan struct{})}
	}
	return out
}

// answerFailure answers a request that got no response. One that never reached the
// server is answered in words; one that did ends as it ended there.
func (p *Proxy) answerFailure(w http.ResponseWriter, x *exchange, shown *url.URL, err error) {
	var viaProxy *upstream.Error
	var refused *certificateError
	switch {
	case errors.As(err, &viaProxy):
		err = viaProxy // without what net/http adds
		x.notReached()
	case errors.As(err, &refused):
		err = refused
		x.notReached()
		x.record(func(rec captures.Recording) { rec.Connection(refused.recorded(), "") })
	}
	x.mu.Lock()
	reached := x.serverReached
	x.mu.Unlock()
	x.endBroken(err)
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

// A responseRelay copies a response to the client.
type responseRelay struct {
	// ctx ends with the client's request, or with the recording.
	ctx context.Context

	w   http.ResponseWriter
	rc  *http.ResponseController
	x   *exchange
	res *http.Response
	buf *[chunkSize]byte

	// mu is held by the timer of the head and by the body, which both write.
	mu sync.Mutex

	// sent says that something of the body was sent, or the head by its timer.
	sent bool
}

func (d *responseRelay) run() error {
	announced := d.writeHead()
	bodiless := d.res.ContentLength == 0 || d.res.Request.Method == http.MethodHead
	switch {
	case bodiless && len(d.res.Trailer) == 0:
		// The head ends the stream, as it did on the way here.
	case d.res.ContentLength > 0 && d.res.ContentLength <= chunkSize && !bodiless:
		timer := time.AfterFunc(headDelay, d.flushHead)
		defer func() {
			timer.Stop()
			d.markSent() // the timer may be at it: wait
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

// writeHead writes the status and the header section, but does not flush them. It
// returns the trailers announced in it.
func (d *responseRelay) writeHead() map[string]bool {
	h := d.w.Header()
	for name, values := range forwardHeader(d.res.Header) {
		h[name] = values
	}
	h.Del("Te")
	// net/http adds these where they are absent.
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := h[name]; !ok {
			h[name] = nil
		}
	}
	if _, ok := h["Content-Length"]; !ok && d.res.ProtoMajor >= 2 {
		h["Content-Length"] = nil
	}
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

func (d *responseRelay) flushHead() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.sent {
		d.sent = true
		_ = d.rc.Flush() // the next write returns the error
	}
}

func (d *responseRelay) markSent() {
	d.mu.Lock()
	d.sent = true
	d.mu.Unlock()
}

// copyBody forwards the body piece by piece. The last piece of a known length is
// left for the end of the stream to flush.
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
			// A server that is told of a cancel may still end its answer as if
			// it were whole.
			return d.ctx.Err()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			// What came before the error reaches the client before it.
			_ = d.rc.Flush()
			return err
		}
	}
}

// writeTrailers forwards the trailers, announced or not, and records them.
func (d *responseRelay) writeTrailers(announced map[string]bool) {
	for name, values := range d.res.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		d.w.Header()[name] = values
	}
	d.x.recordTrailers(captures.Down, d.res.ProtoMajor, d.res.Trailer)
}

// earlyHints relays the informational responses that precede a response.
type earlyHints struct {
	w    http.ResponseWriter
	x    *exchange
	mu   sync.Mutex
	done bool
}

func (e *earlyHints) trace(ctx context.Context, x *exchange) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:        func(info httptrace.GotConnInfo) { x.recordConnection(info.Conn) },
		Got1xxResponse: e.send,
	})
}

func (e *earlyHints) send(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done { // the request has failed meanwhile
		return nil
	}
	if status == http.StatusContinue && !e.x.firstContinue() {
		return nil // net/http has sent it by itself
	}
	h := e.w.Header()
	for name, values := range forwardHeader(http.Header(header)) {
		h[name] = values
	}
	e.w.WriteHeader(status)
	clear(h)
	return nil
}

func (e *earlyHints) stop() {
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
}
