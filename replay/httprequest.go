package replay

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/outbound"
)

// transport makes a transport for the request, and no other address than its
// target's.
func (p *Plan) transport() *http.Transport {
	// One message each way works on either version.
	fallback := p.whole && p.shown.Protocol != decode.GRPC
	t := outbound.New(p.url.Scheme, p.shown.HTTP, p.isLocal(), fallback, p.o.Policy)
	t.DisableKeepAlives = p.shown.HTTP != "2" && p.split == nil
	return t
}

// request makes the HTTP request around a body.
func (p *Plan) request(body io.Reader, length int64) *http.Request {
	return newRequest(p.shown.Method, p.url, p.headers, p.trailers, body, length)
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

// connection says what is known of the connection that answered.
func (o *Options) connection(resp *http.Response) captures.TLS {
	s := resp.TLS
	if s == nil {
		return captures.TLS{}
	}
	version := strings.TrimPrefix(tls.VersionName(s.Version), "TLS ")
	return captures.TLS{Version: version, Cipher: tls.CipherSuiteName(s.CipherSuite), ServerName: s.ServerName, ALPN: s.NegotiatedProtocol, Unverified: o.Insecure, CA: captures.AuthorityOf(*s)}
}
