package replay

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode"
)

const idleTimeout = 10 * time.Second

// errNoHTTP2 ends the TLS handshake with a server that does not negotiate
// HTTP/2 for a call that needs it. net/http would send it as HTTP/1.1.
var errNoHTTP2 = errors.New("the server does not negotiate HTTP/2")

// transport makes a transport for one request: no proxy, no redirects, no
// compression of its own, and no address that the plan's target is not.
func (p *Plan) transport() *http.Transport {
	t := &http.Transport{
		DialContext:        guard{live: p.o.Live && !p.isLocal(), dial: p.o.dial}.DialContext,
		DisableCompression: true,
		DisableKeepAlives:  p.HTTP != "2" && p.split == nil,
		// of one that was in use when it should have been closed
		IdleConnTimeout: idleTimeout,
		TLSClientConfig: p.o.tlsConfig(),
		Protocols:       new(http.Protocols),
	}
	switch {
	case p.HTTP != "2":
		t.Protocols.SetHTTP1(true)
	case p.url.Scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	default:
		t.Protocols.SetHTTP2(true)
		// One message each way works on either version.
		if t.Protocols.SetHTTP1(p.whole && p.Protocol != decode.GRPC); !t.Protocols.HTTP1() {
			t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
				if s.NegotiatedProtocol != "h2" {
					return errNoHTTP2
				}
				return nil
			}
		}
	}
	return t
}

// tlsConfig is how the server's certificate is verified.
func (o *Options) tlsConfig() *tls.Config {
	//nolint:gosec // --upstream-insecure
	return &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure}
}

// request makes the HTTP request around a body.
func (p *Plan) request(body io.Reader, length int64) *http.Request {
	return newRequest(p.Method, p.url, p.headers, p.trailers, body, length)
}

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
		r.Header["User-Agent"] = nil // or net/http names itself
	}
	if len(trailers) > 0 {
		r.Trailer = http.Header{}
		for _, h := range trailers {
			r.Trailer.Add(h.Name, h.Value)
		}
	}
	return r
}

// fields lists a header section, in the order of its names: net/http does not
// keep the one on the wire.
func fields(h http.Header) captures.Headers {
	var out captures.Headers
	for name, values := range h {
		for _, v := range values {
			out = append(out, captures.Header{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b captures.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// connection says what is known of the connection that answered.
func (o *Options) connection(resp *http.Response) captures.TLS {
	s := resp.TLS
	if s == nil {
		return captures.TLS{}
	}
	version := strings.TrimPrefix(tls.VersionName(s.Version), "TLS ")
	return captures.TLS{Version: version, Cipher: tls.CipherSuiteName(s.CipherSuite), ServerName: s.ServerName, ALPN: s.NegotiatedProtocol, Unverified: o.Insecure}
}
