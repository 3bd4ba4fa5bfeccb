package mitm

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/mitm/h1"
	"unwire/mitm/upstream"
)

// proxyFields are for a proxy, and go no further.
var proxyFields = []string{"proxy-connection", "proxy-authorization", strings.ToLower(upstream.ViaHeader)}

// interceptH1 serves a client that speaks HTTP/1 to one server, or to the proxy in its
// place, on conn, which is the client's or the TLS on that.
func (p *Proxy) interceptH1(c *clientConn, conn net.Conn, t target) {
	r := h1.New(p.newH1(c, conn, t.scheme+"://"+t.addr, func(q *h1.Request) (*h1.Route, error) {
		if c.origin != nil {
			return p.routeReverse(q, c.origin), nil
		}
		host := q.Host()
		if host == "" {
			host = t.addr
		}
		return p.routeH1(t, q, urlOf(t.scheme, host, q.Target), true), nil
	}))
	if !p.addRelay(r) {
		_ = conn.Close()
		return
	}
	defer p.removeRelay(r)
	r.Run(p.ctx)
}

// newFront returns a listener's connection as goproxy and the control endpoints see it:
// what is recorded is relayed before them.
func (p *Proxy) newFront(c *clientConn) net.Conn {
	base := ""
	if c.origin != nil {
		base = c.origin.Scheme + "://" + c.origin.Host
	}
	return h1.NewFront(p.ctx, p.newH1(c, c, base, func(q *h1.Request) (*h1.Route, error) {
		switch {
		case q.Method == http.MethodConnect:
			return nil, nil
		case q.Target != "*" && q.Target[0] != '/':
			return p.routeProxied(q)
		case c.allowsControl && isControlTarget(q.Target):
			return nil, nil
		case c.origin != nil:
			return p.routeReverse(q, c.origin), nil
		}
		return nil, nil
	}))
}

func isControlTarget(target string) bool {
	u, err := url.ParseRequestURI(target)
	return err == nil && isControl(u.Path)
}

// routeProxied is for a request with the URL of a server.
func (p *Proxy) routeProxied(q *h1.Request) (*h1.Route, error) {
	// The path may be none that a URL can have.
	scheme, rest, _ := strings.Cut(q.Target, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &h1.Malformed{Status: http.StatusBadRequest, Reason: "the request's target is no URL of a server"}
	}
	t := targetOf(u)
	t.via = q.Header.Get(upstream.ViaHeader)
	if p.dialer.hasPassed(t.via) || !p.hosts.RecordsHost(withPort(u.Host, portFor(u))) {
		return nil, nil
	}
	to := p.routeH1(t, q, q.Target, false)
	to.Host, to.Drop = u.Host, slices.Concat(proxyFields, q.HopByHop())
	if to.Target == "" {
		to.Target = originForm(q.Method, q.Target)
	}
	return to, nil
}

// originForm is a target in absolute-form as it is sent to the server.
//
// Source: RFC 9112, sections 3.2.1 and 3.2.4
func originForm(method, target string) string {
	_, rest, _ := strings.Cut(target, "://")
	i := strings.IndexAny(rest, "/?#")
	switch {
	case i < 0 && method == http.MethodOptions:
		return "*"
	case i < 0:
		return "/"
	case rest[i] != '/':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// routeReverse is for a request to the origin that the listener stands before.
func (p *Proxy) routeReverse(q *h1.Request, origin *url.URL) *h1.Route {
	target := q.Target
	if strings.Contains(target, "://") && target[0] != '/' {
		target = originForm(q.Method, target)
	}
	if target[0] == '/' {
		target = strings.TrimSuffix(origin.EscapedPath(), "/") + target
	}
	to := p.routeH1(targetOf(origin), q, urlOf(origin.Scheme, origin.Host, target), true)
	if to.Host = origin.Host; to.Target == "" && target != q.Target {
		to.Target = target
	}
	return to
}

// urlOf is the URL of a request, as the client sent it.
func urlOf(scheme, host, target string) string {
	switch {
	case target == "*":
		return scheme + "://" + host + "/*"
	case strings.HasPrefix(target, "/"):
		return scheme + "://" + host + target
	case strings.Contains(target, "://"):
		return target
	}
	return scheme + "://" + host + "/" + target
}

// routeH1 is the way to a server: directly, through a tunnel, or by an HTTP proxy that
// requests are sent to. One for another host than the connection was opened to, or for
// another protocol, goes through a tunnel all the same: the proxy would send it
// elsewhere, or drop the upgrade.
func (p *Proxy) routeH1(t target, q *h1.Request, shown string, bound bool) *h1.Route {
	o := p.origins.get(t)
	o.gotRequest.Store(true)
	to := &h1.Route{Key: o, URL: shown, Bound: bound, Dial: o.dialH1}
	to.Unrecorded = !p.recordsURL(shown, t.addr)
	if proxy := o.forwarder; proxy != nil && !q.Upgrades() && strings.EqualFold(withPort(hostOfURL(shown), "80"), t.addr) {
		to.Key = proxyKey{o}
		to.Dial = o.dialForwarder
		to.Target = shown
		to.Add = captures.Headers{{Name: upstream.ViaHeader, Value: p.dialer.viaFor(t)}}
		if user := upstream.Authorization(proxy); user != "" {
			to.Add = append(to.Add, captures.Header{Name: "Proxy-Authorization", Value: user})
		}
		to.Refusal = func(status int, header captures.Headers) error {
			res := &http.Response{StatusCode: status, Header: make(http.Header)}
			for _, f := range header {
				res.Header.Add(f.Name, f.Value)
			}
			if !upstream.IsRefusal(res) {
				return nil
			}
			return upstream.Refusal(proxy, t.addr, res)
		}
	}
	return to
}

// A proxyKey tells connections to a proxy, for the requests to an origin, from those to
// the origin.
type proxyKey struct{ *origin }

func hostOfURL(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// recordsURL reports whether a request to a recorded host is recorded.
func (p *Proxy) recordsURL(shown, addr string) bool {
	scheme, rest, _ := strings.Cut(shown, "://")
	host := hostOfURL(shown)
	path := ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		path, _, _ = strings.Cut(rest[i:], "?")
	}
	return p.hosts.RecordsRequest(path, withPort(host, portFor(&url.URL{Scheme: scheme})), addr)
}

// newH1 says how a client's HTTP/1 is relayed and recorded. base is the URL of the
// server that it is connected to, "" if it names one in each request.
func (p *Proxy) newH1(c *clientConn, conn net.Conn, base string, route func(*h1.Request) (*h1.Route, error)) h1.Config {
	return h1.Config{
		Client: conn, Route: route,
		Begin: func(q *h1.Request, to *h1.Route, server net.Conn) captures.Recording {
			return p.beginH1(c, q, to.URL, server)
		},
		Connected: func(rec captures.Recording, server net.Conn) {
			rec.Connection(p.tlsOf(server), server.RemoteAddr().String())
		},
		Refused: func(q *h1.Request, reason *h1.Malformed) { p.recordRefusedRequest(c, base, q, reason) },
		Explain: p.explainH1,
		Upgrade: func(client, server net.Conn, rec captures.Recording, q *h1.Request, answer captures.Headers) {
			p.upgrade(client, server, &exchange{proxy: p, ctx: p.ctx, rec: rec, requestHeader: q.Header, answerHeader: answer})
		},
		Admit: p.admitExchange, Release: p.releaseExchange,
	}
}

// beginH1 starts the recording of a request, if it can be.
func (p *Proxy) beginH1(c *clientConn, q *h1.Request, shown string, server net.Conn) captures.Recording {
	ex := captures.Exchange{
		Method: q.Method, URL: shown, HTTP: q.Version, RequestHeaders: q.Header,
		Started: time.Now(), Client: c.remote(), Source: p.opts.Source,
	}
	if server != nil {
		ex.TLS, ex.Server = p.tlsOf(server), server.RemoteAddr().String()
	}
	rec, err := c.recorder.Begin(ex)
	if err != nil {
		p.log.Error("passes unrecorded", "url", shown, "err", err)
		return nil
	}
	return rec
}

// recordRefusedRequest records a request that was malformed, as far as it was
// understood.
func (p *Proxy) recordRefusedRequest(c *clientConn, base string, q *h1.Request, reason *h1.Malformed) {
	p.log.Warn("a malformed request is refused", "from", c.RemoteAddr(), "reason", reason)
	scheme, addr, _ := strings.Cut(base, "://")
	shown := urlOf(scheme, addr, q.Target)
	if !strings.HasPrefix(q.Target, "/") && strings.Contains(q.Target, "://") {
		addr = hostOfURL(q.Target)
	}
	if addr == "" || !p.hosts.RecordsHost(withPort(addr, "80")) || !p.admitExchange() {
		return
	}
	defer p.releaseExchange()
	if rec := p.beginH1(c, q, shown, nil); rec != nil {
		rec.End(captures.Failed, h1.RefusedError(reason).Error())
	}
}

// explainH1 words why a request got no answer, if the server has got nothing of it.
func (p *Proxy) explainH1(to *h1.Route, rec captures.Recording, err error, connected bool) *h1.Answer {
	var viaProxy *upstream.Error
	var refused *certificateError
	switch {
	case errors.As(err, &viaProxy):
		err = viaProxy
	case errors.As(err, &refused):
		err = refused
		if rec != nil {
			rec.Connection(refused.recorded(), "")
		}
	case connected || p.ctx.Err() != nil:
		return nil
	}
	host := hostOfURL(to.URL)
	p.log.Warn("server not reached", "host", host, "err", err)
	status, text := failureText(host, err)
	a := &h1.Answer{Status: status, Text: text, Err: err, Unreached: true}
	a.Header = captures.Headers{{Name: "X-Content-Type-Options", Value: "nosniff"}}
	if status == http.StatusLoopDetected {
		a.Header = append(a.Header, captures.Header{Name: upstream.ViaHeader, Value: loopMark})
	}
	return a
}

// failureText is the answer to a request whose server was not reached.
func failureText(host string, err error) (status int, text string) {
	text = fmt.Sprintf("unwire: no connection to %s: %v\n", host, err)
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		text += "unwire: hint: give its CA with --upstream-ca, if you trust it\n"
	case errors.As(err, new(*untrustedError)):
		text += "unwire: hint: --upstream-insecure goes on all the same, and each exchange says so\n"
	}
	if errors.Is(err, upstream.ErrLoop) {
		return http.StatusLoopDetected, text
	}
	return http.StatusBadGateway, text
}
