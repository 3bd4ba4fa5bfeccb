package replay

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/outbound"
)

// transport returns an HTTP transport for the plan's requests. It uses the captured HTTP version, and
// connects only to hosts that the options allow; if the target is this machine, to no other.
func (p *Plan) transport() *http.Transport {
	t := outbound.New(p.url.Scheme, p.shown.HTTP, p.isLocal(), !p.needsHTTP2(), p.o.Policy)
	t.DisableKeepAlives = p.shown.HTTP != "2" && p.split == nil
	return t
}

// needsHTTP2 reports whether the request works only over HTTP/2: gRPC, and streams in which both sides
// send at the same time.
func (p *Plan) needsHTTP2() bool {
	if p.shown.Protocol == decode.GRPC || p.shown.Hold {
		return true
	}
	answered := false
	for i := range p.captured.Frames {
		f := &p.captured.Frames[i]
		if f.Dir == captures.Up && answered {
			return true
		}
		answered = answered || f.Dir == captures.Down
	}
	return false
}

// inVersion returns the plan for the version of HTTP that its server supports, if --to names another
// server than the captured one. note says that the version changed.
//
// Errors: outbound.ErrNoHTTP2 if the request works only over HTTP/2.
func (p *Plan) inVersion(ctx context.Context) (q *Plan, note string, err error) {
	captured, err := url.Parse(p.captured.URL)
	if err == nil && captured.Host == p.url.Host || p.overConnection() || p.split != nil || p.shown.HTTP == "3" {
		return p, "", nil
	}
	// A client of TLS negotiates the version if it prefers HTTP/2.
	preferred := p.shown.HTTP
	if preferred == "2" && p.url.Scheme == "https" {
		return p, "", nil
	}
	version := outbound.Version(ctx, p.url, preferred, p.isLocal(), p.o.Policy)
	switch {
	case version == preferred || preferred != "2" && version != "2":
		return p, "", nil
	case version != "2" && p.needsHTTP2() && p.shown.Protocol == decode.GRPC:
		return p, "gRPC needs HTTP/2, but the server supports only HTTP/1.1", outbound.ErrNoHTTP2
	case version != "2" && p.needsHTTP2():
		return p, "a bidirectional stream needs HTTP/2, but the server supports only HTTP/1.1", outbound.ErrNoHTTP2
	}
	other := *p
	other.shown.HTTP = version
	return &other, fmt.Sprintf("the server supports only HTTP/%s: the request was sent over HTTP/%s instead of HTTP/%s", version, version, preferred), nil
}

// request builds the HTTP request with a body of the given length in bytes; -1 means that the length is
// unknown.
func (p *Plan) request(body io.Reader, length int64) *http.Request {
	return newRequest(p.shown.Method, p.url, p.headers, p.trailers, body, length)
}

// newRequest builds an HTTP request with exactly these headers and trailers. body may be nil; length is
// in bytes, or -1 if it is unknown.
func newRequest(method string, u *url.URL, headers, trailers captures.Headers, body io.Reader, length int64) *http.Request {
	r := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: http.Header{}, ContentLength: length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if body != nil {
		r.Body = io.NopCloser(body)
		if c, ok := body.(io.ReadCloser); ok {
			r.Body = c
		}
	}
	for _, h := range headers {
		name := http.CanonicalHeaderKey(h.Name)
		r.Header[name] = append(r.Header[name], h.Value)
	}
	if _, ok := r.Header["User-Agent"]; !ok {
		// otherwise net/http sends its own
		r.Header["User-Agent"] = nil
	}
	if len(trailers) > 0 {
		r.Trailer = http.Header{}
		for _, h := range trailers {
			r.Trailer.Add(h.Name, h.Value)
		}
	}
	return r
}

// connection returns the TLS properties of the connection on which a response arrived.
func (o *Options) connection(resp *http.Response) captures.TLS {
	return o.state(resp.TLS)
}

// state converts Go's TLS connection state to the form that captures store; nil gives the zero value.
func (o *Options) state(s *tls.ConnectionState) captures.TLS {
	if s == nil {
		return captures.TLS{}
	}
	version := strings.TrimPrefix(tls.VersionName(s.Version), "TLS ")
	return captures.TLS{Version: version, Cipher: tls.CipherSuiteName(s.CipherSuite), ServerName: s.ServerName, ALPN: s.NegotiatedProtocol, Unverified: o.Insecure, CA: captures.AuthorityOf(*s)}
}
