package mitm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// minPipelineGap is the pause after a response from which the next request on the connection does not count as
// pipelined.
const minPipelineGap = time.Second

// errNotRepeated is the error of a request that was not sent again, although net/http would have done so.
var errNotRepeated = errors.New("the server closed the connection without a response; unwire did not send the request again")

// noteAnswered records the time of the last response on the client's connection.
func (c *clientConn) noteAnswered() { c.lastAnswer.Store(time.Now().UnixNano()) }

// mayRepeat reports whether a request may be sent to the server a second time, if a reused connection was closed
// without a response.
//
// The first request on a client's connection may be repeated: the client cannot know that the proxy reuses
// connections. So may a request after a pause, during which the server may have closed its connection. Any other
// request may have been pipelined; its client decides, as it would without the proxy.
//
// Source: RFC 9110, section 9.2.2; RFC 9112, section 9.3.2
func mayRepeat(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
	default:
		return false
	}

	// A request with a body is never repeated.
	c, ok := r.Context().Value(clientKey{}).(*clientConn)
	if !ok || r.ContentLength != 0 {
		return false
	}
	last := c.lastAnswer.Load()
	return r.ProtoMajor >= 2 || last == 0 || time.Since(time.Unix(0, last)) >= minPipelineGap
}

// sendOnce sends a request through an http.Transport, and limits the transport's retries. A transport
// also retries a POST with an Idempotency-Key and pipelined requests, once for each idle connection.
// With sendOnce, a request is retried at most once, and only if mayRepeat is set or nothing of it was
// written.
//
// Errors: errNotRepeated; errors of the transport.
func sendOnce(transport *http.Transport, r *http.Request, mayRepeat bool) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	guard := &repeatGuard{mayRepeat: mayRepeat, cancel: cancel}
	res, err := transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { guard.beginAttempt() },
		GotConn:      guard.useConn,
		WroteHeaders: guard.noteWritten,
	})))
	if err != nil {
		if guard.isRefused() {
			err = errNotRepeated
		}
		cancel(err)
	}
	return res, err
}

// A repeatGuard cancels a request before an http.Transport sends it too often. The transport calls its methods
// for each attempt.
type repeatGuard struct {
	// cancel cancels the request with a reason.
	cancel context.CancelCauseFunc

	// mu guards the fields below.
	mu sync.Mutex
	// mayRepeat means that the request may be sent a second time.
	mayRepeat bool
	// written means that a part of this attempt may have reached the server.
	written bool
	// refused means that the current attempt must not send anything.
	refused bool
}

// beginAttempt is called before the transport gets a connection for an attempt.
func (g *repeatGuard) beginAttempt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.written:
	case g.mayRepeat:
		g.mayRepeat, g.written = false, false
	default:
		g.refused = true
		g.cancel(errNotRepeated)
	}
}

// useConn is called before an attempt writes to a connection. The transport can find a connection although the
// request was cancelled; a refused attempt closes it.
func (g *repeatGuard) useConn(info httptrace.GotConnInfo) {
	if g.isRefused() {
		_ = info.Conn.Close()
	}
}

// noteWritten records that the attempt may have sent something to the server.
func (g *repeatGuard) noteWritten() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written = true
}

// isRefused reports whether the current attempt must not send anything.
func (g *repeatGuard) isRefused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}
