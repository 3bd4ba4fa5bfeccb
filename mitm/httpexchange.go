package mitm

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/mitm/upstream"
)

// An exchange records one request and its response that net/http (and not a relay of package h1 or h2) handles.
// Both directions are recorded concurrently. After the end, or if rec is nil, nothing is recorded.
type exchange struct {
	// proxy is the proxy that handles the request.
	proxy *Proxy

	// ctx is the context of the client's request. It ends when the client disconnects.
	ctx context.Context

	// requestHeader and answerHeader are the headers of request and response, if the exchange has switched its
	// protocol.
	requestHeader, answerHeader captures.Headers

	// upgraded describes the connection after the switch, for rewriting rules.
	upgraded *captures.Exchange

	// mu guards the fields below.
	mu sync.Mutex
	// rec is the recording of the exchange; nil if it is not recorded, or has ended.
	rec captures.Recording

	// serverReached means that a connection to the server was opened or reused.
	serverReached bool

	// continueSent means that the client received "100 Continue", from net/http or from the server.
	continueSent bool

	// uploadErr is the error of reading the request body.
	uploadErr error
}

// beginExchange starts recording a request to t. shown is the recorded URL. If that fails, for instance because
// the disk is full, the request is forwarded unrecorded.
func (p *Proxy) beginExchange(r *http.Request, t target, shown *url.URL) *exchange {
	x := &exchange{proxy: p, ctx: r.Context()}
	if !p.hosts.RecordsRequest(shown.EscapedPath(), withPort(shown.Host, portFor(shown)), t.addr) {
		return x
	}
	rec, err := r.Context().Value(clientKey{}).(*clientConn).recorder.Begin(captures.Exchange{
		Method:         r.Method,
		URL:            shown.String(),
		HTTP:           httpVersion(r.ProtoMajor, r.ProtoMinor),
		RequestHeaders: section{r.Header, r.ProtoMajor, r.Host, r.TransferEncoding, r.Trailer}.headers(),
		Started:        time.Now(),
		Client:         r.RemoteAddr,
		Source:         p.opts.Source,
	})
	if err != nil {
		p.log.Error("forwarded without recording", "host", shown.Host, "err", err)
		return x
	}
	x.rec = rec
	return x
}

// httpVersion formats an HTTP version as "1.0", "1.1" or "2".
func httpVersion(major, minor int) string {
	if major == 1 && minor == 0 {
		return "1.0"
	}
	return string(rune('0'+major)) + map[bool]string{true: ".1"}[major == 1]
}

// record calls f with the recording, unless the exchange has ended.
func (x *exchange) record(f func(captures.Recording)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rec != nil {
		f(x.rec)
	}
}

// recordConnection records the connection on which the request is sent.
func (x *exchange) recordConnection(conn net.Conn) {
	x.mu.Lock()
	x.serverReached = true
	x.mu.Unlock()
	x.record(func(rec captures.Recording) { rec.Connection(x.proxy.tlsOf(conn), conn.RemoteAddr().String()) })
}

// firstContinue reports whether this is the first "100 Continue" for the client. net/http sends one by itself
// when the body is first read, so a second one from the server must be dropped.
func (x *exchange) firstContinue() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := !x.continueSent
	x.continueSent = true
	return first
}

// clearServerReached records that the server was not reached after all, for errors that occurred before it,
// such as those of a proxy.
func (x *exchange) clearServerReached() {
	x.mu.Lock()
	x.serverReached = false
	x.mu.Unlock()
}

// recordResponse records the status and headers of the response.
func (x *exchange) recordResponse(res *http.Response) {
	h := section{res.Header, res.ProtoMajor, "", res.TransferEncoding, res.Trailer}.headers()
	x.record(func(rec captures.Recording) { rec.Response(res.StatusCode, h) })
}

// recordChunk records body bytes that arrived just now.
func (x *exchange) recordChunk(d captures.Direction, p []byte) {
	x.record(func(rec captures.Recording) { rec.Chunk(d, p) })
}

// recordTrailers records trailers, if there are any. major is the HTTP version.
func (x *exchange) recordTrailers(d captures.Direction, major int, trailer http.Header) {
	if h := (section{header: trailer, major: major}).headers(); len(h) > 0 {
		x.record(func(rec captures.Recording) { rec.Trailers(d, h) })
	}
}

// end ends the recording with an outcome; err may be nil.
func (x *exchange) end(o captures.Outcome, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	x.record(func(rec captures.Recording) {
		rec.End(o, text)
		x.rec = nil
	})
}

// endWithError ends the recording after an error. The outcome depends on which side failed.
func (x *exchange) endWithError(err error) {
	x.mu.Lock()
	reached, upErr := x.serverReached, x.uploadErr
	x.mu.Unlock()
	switch {
	case x.proxy.ctx.Err() != nil:
		x.end(captures.Incomplete, errRecordingStopped)
	case x.ctx.Err() != nil || upErr != nil:
		x.end(captures.Canceled, errors.New("the client closed the connection"))
	case reached:
		x.end(captures.Reset, err)
	default:
		x.end(captures.Failed, err)
	}
}

// A recordedBody is a request body that is recorded while it is read.
type recordedBody struct {
	// ReadCloser is the request body.
	io.ReadCloser
	// x is the exchange of the request.
	x *exchange
	// r is the request, whose trailers are known when the body has ended.
	r *http.Request

	// closed means that the transport has closed the body: the server does not want the rest.
	closed atomic.Bool

	// ended is closed when the body is no longer read.
	ended chan struct{}
	// endOnce closes ended only once.
	endOnce sync.Once
}

// awaitEnd waits up to d until the request body is no longer read, and reports whether that is the case.
func (t *recordedBody) awaitEnd(d time.Duration) bool {
	if d == 0 {
		select {
		case <-t.ended:
			return true
		default:
			return false
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.ended:
		return true
	case <-timer.C:
		return false
	}
}

// Close closes the body, because the server does not want the rest.
func (t *recordedBody) Close() error {
	t.closed.Store(true)
	t.endOnce.Do(func() { close(t.ended) })
	return t.ReadCloser.Close()
}

// Read returns body bytes and records them.
func (t *recordedBody) Read(p []byte) (int, error) {
	t.x.firstContinue()
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.x.recordChunk(captures.Up, p[:n])
	}
	if err != nil {
		defer t.endOnce.Do(func() { close(t.ended) })
	}
	switch {
	case err == io.EOF:
		// net/http sets the trailers just before io.EOF.
		t.x.recordTrailers(captures.Up, t.r.ProtoMajor, t.r.Trailer)
	case err != nil && !t.closed.Load():
		t.x.mu.Lock()
		t.x.uploadErr = err
		t.x.mu.Unlock()
	}
	return n, err
}

// tlsOf returns the description of the connection to a server that is recorded in the capture.
func (p *Proxy) tlsOf(conn net.Conn) captures.TLS {
	c, ok := conn.(*serverConn)
	if !ok {
		return captures.TLS{Proxy: upstream.ProxyOf(conn)}
	}
	if t := c.recorded.Load(); t != nil {
		return *t
	}

	// Compute it once per connection.
	s := c.ConnectionState()
	t := captures.TLS{
		Proxy:      upstream.ProxyOf(conn),
		Version:    strings.TrimPrefix(tls.VersionName(s.Version), "TLS "),
		Cipher:     tls.CipherSuiteName(s.CipherSuite),
		ServerName: s.ServerName,
		ALPN:       s.NegotiatedProtocol,
		Unverified: p.opts.UpstreamInsecure,
		CA:         captures.AuthorityOf(s),
	}
	if c.certificateRequested {
		t.ClientCertificate = certificateState(c.certificate != nil)
	}
	c.recorded.Store(&t)
	return t
}
