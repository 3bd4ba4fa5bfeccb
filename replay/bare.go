package replay

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"unwire/captures"
)

// NewTransport makes a transport for requests to u of one's own making, with
// the rules of a replay: no proxy, no redirects, and no address that is not
// this machine's unless Options allow it.
//
// Shape: of Options, Live, AllowHosts, Roots and Insecure count. Over https:// the version
// of HTTP is negotiated, HTTP/1.1 where http2 is false; over http:// it is spoken.
func NewTransport(u *url.URL, http2 bool, o Options) *http.Transport {
	live := CheckTarget(u, false, nil) != nil && CheckTarget(u, o.Live, o.AllowHosts) == nil
	t := &http.Transport{
		DialContext:        guard{live: live, dial: o.dial}.DialContext,
		DisableCompression: true,
		TLSClientConfig:    o.tlsConfig(),
		Protocols:          new(http.Protocols),
	}
	switch {
	case !http2:
		t.Protocols.SetHTTP1(true)
	case u.Scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	default:
		t.Protocols.SetHTTP2(true)
		t.Protocols.SetHTTP1(true)
	}
	return t
}

// Authorization is the `authorization` header that the secrets hold, if any.
func (c *Credentials) Authorization() (value string, ok bool) {
	token, _, ok := c.find(headerNames("authorization")...)
	if !ok {
		return "", false
	}
	return scheme(token, ""), true
}

// RequestHeaders are the headers that the plan would send, with its secrets;
// secret tells which of them hold one.
//
// Errors: ErrCredentials where one is missing; ErrRefused.
func (p *Plan) RequestHeaders() (headers captures.Headers, secret []bool, err error) {
	if p.Refusal != "" {
		return nil, nil, fmt.Errorf("replay: %w", errors.Join(ErrRefused, errors.New(p.Refusal)))
	}
	if err := p.ready(); err != nil {
		return nil, nil, err
	}
	for i, h := range p.headers {
		secret = append(secret, i >= len(p.Headers) || p.Headers[i].Value != h.Value)
	}
	return p.headers, secret, nil
}
