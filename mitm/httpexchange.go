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

// An exchange feeds one request and its response to the recorder. Both
// directions do so at the same time; what comes after its end is not recorded,
// nor is anything where rec is nil from the beginning.
type exchange struct {
	proxy *Proxy

	// ctx is that of the client's request: it ends when the client goes away.
	ctx context.Context

	// requestHeader and answerHeader are those of an exchange that changed its protocol.
	requestHeader, answerHeader captures.Headers

	mu  sync.Mutex
	rec captures.Recording

	// serverReached says that a connection to the server was used.
	serverReached bool

	// continueSent says that the client was told to send its body, by net/http or
	// by the server.
	continueSent bool

	// uploadErr is why reading the request's body failed.
	uploadErr error
}

// beginExchange starts the recording of a request, if it is to be recorded and can be:
// that a disk is full must not stop the client.
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
		p.log.Error("passes unrecorded", "host", shown.Host, "err", err)
		return x
	}
	x.rec = rec
	return x
}

func httpVersion(major, minor int) string {
	if major == 1 && minor == 0 {
		return "1.0"
	}
	return string(rune('0'+major)) + map[bool]string{true: ".1"}[major == 1]
}

// record runs f unless the exchange has ended.
func (x *exchange) record(f func(captures.Recording)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rec != nil {
		f(x.rec)
	}
}

func (x *exchange) recordConnection(conn net.Conn) {
	x.mu.Lock()
	x.serverReached = true
	x.mu.Unlock()
	x.record(func(rec captures.Recording) { rec.Connection(x.proxy.tlsOf(conn), conn.RemoteAddr().String()) })
}

// firstContinue reports, once, that the client was not yet told to send its body:
// net/http does so by itself when the body is first read.
func (x *exchange) firstContinue() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := !x.continueSent
	x.continueSent = true
	return first
}

// notReached takes back that the server was reached, for an error that is this side's.
func (x *exchange) notReached() {
	x.mu.Lock()
	x.serverReached = false
	x.mu.Unlock()
}

func (x *exchange) recordResponse(res *http.Response) {
	h := section{res.Header, res.ProtoMajor, "", res.TransferEncoding, res.Trailer}.headers()
	x.record(func(rec captures.Recording) { rec.Response(res.StatusCode, h) })
}

func (x *exchange) recordChunk(d captures.Direction, p []byte) {
	x.record(func(rec captures.Recording) { rec.Chunk(d, p) })
}

func (x *exchange) recordTrailers(d captures.Direction, major int, trailer http.Header) {
	if h := (section{header: trailer, major: major}).headers(); len(h) > 0 {
		x.record(func(rec captures.Recording) { rec.Trailers(d, h) })
	}
}

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

// endBroken ends the exchange after an error; the outcome says which side it was on.
func (x *exchange) endBroken(err error) {
	x.mu.Lock()
	reached, upErr := x.serverReached, x.uploadErr
	x.mu.Unlock()
	switch {
	case x.proxy.ctx.Err() != nil:
		x.end(captures.Incomplete, errRecordingStopped)
	case x.ctx.Err() != nil || upErr != nil:
		x.end(captures.Canceled, errors.New("the client went away"))
	case reached:
		x.end(captures.Reset, err)
	default:
		x.end(captures.Failed, err)
	}
}

// A bodyTap is a request's body that is recorded as it is read.
type bodyTap struct {
	io.ReadCloser
	x *exchange
	r *http.Request

	// closed says that the transport closed the body: the server wants no more of it.
	closed atomic.Bool

	ended   chan struct{}
	endOnce sync.Once
}

// awaitEnd waits until nobody reads the body any more, and reports whether.
func (t *bodyTap) awaitEnd(d time.Duration) bool {
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

func (t *bodyTap) Close() error {
	t.closed.Store(true)
	t.endOnce.Do(func() { close(t.ended) })
	return t.ReadCloser.Close()
}

func (t *bodyTap) Read(p []byte) (int, error) {
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
		// net/http fills in the trailers just before it says EOF.
		t.x.recordTrailers(captures.Up, t.r.ProtoMajor, t.r.Trailer)
	case err != nil && !t.closed.Load():
		t.x.mu.Lock()
		t.x.uploadErr = err
		t.x.mu.Unlock()
	}
	return n, err
}

func (p *Proxy) tlsOf(conn net.Conn) captures.TLS {
	c, ok := conn.(*serverConn)
	if !ok {
		return captures.TLS{Proxy: upstream.ProxyOf(conn)}
	}
	if t := c.recorded.Load(); t != nil {
		return *t
	}
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
	if c.asked {
		t.ClientCertificate = certificateState(c.certificate != nil)
	}
	c.recorded.Store(&t)
	return t
}
