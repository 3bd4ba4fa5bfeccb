package mitm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// pipelineGap is how long a client's connection has to be idle after an answer for its
// next request not to count as pipelined.
const pipelineGap = time.Second

// errNotRepeated replaces the error of a request that net/http would send again.
var errNotRepeated = errors.New("the server closed the connection without an answer; the request was not sent again")

// noteAnswered notes that a request on the connection was answered.
func (c *clientConn) noteAnswered() { c.lastAnswer.Store(time.Now().UnixNano()) }

// mayRepeat reports whether a request may be sent to the server a second time if it got
// no answer on a connection that had served others.
//
// The first request on a client's connection may: its client cannot know that the proxy
// keeps connections to servers. So may one after a pause, in which the server may have
// closed its connection. Any other may have been pipelined, and its client decides, as
// it does without the proxy.
//
// Source: RFC 9110, section 9.2.2; RFC 9112, section 9.3.2
func mayRepeat(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
	default:
		return false
	}
	c, ok := r.Context().Value(clientKey{}).(*clientConn)
	if !ok || r.ContentLength != 0 {
		return false
	}
	last := c.lastAnswer.Load()
	return r.ProtoMajor >= 2 || last == 0 || time.Since(time.Unix(0, last)) >= pipelineGap
}

// sendOnce sends a request by a transport that would repeat it by rules of its own: also
// a POST with an Idempotency-Key, also one that was pipelined, and once for each idle
// connection. If mayRepeat, the request is repeated once, and never otherwise, unless
// the connection failed before anything of it was written.
//
// Errors: errNotRepeated; those of the transport.
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

// A repeatGuard ends a request before it is sent too often. The transport calls it for
// each attempt.
type repeatGuard struct {
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	mayRepeat bool
	written   bool // something of this attempt may have reached the server
	refused   bool // this attempt must write nothing
}

// beginAttempt is called before an attempt looks for a connection.
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

// useConn is called before an attempt writes. The transport may have found a connection
// although the request's context has ended, so a refused attempt closes it.
func (g *repeatGuard) useConn(info httptrace.GotConnInfo) {
	if g.isRefused() {
		_ = info.Conn.Close()
	}
}

func (g *repeatGuard) noteWritten() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written = true
}

func (g *repeatGuard) isRefused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}
