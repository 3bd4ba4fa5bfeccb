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
	"unwire/mitm/rewrite"
	"unwire/mitm/upstream"
)

// proxyFields are the names of header fields that are meant for the proxy and are not forwarded.
var proxyFields = []string{"proxy-connection", "proxy-authorization", strings.ToLower(upstream.ViaHeader)}

// interceptH1 relays the requests of an HTTP/1 client to the server t. conn is the client's connection, or TLS
// on it.
func (p *Proxy) interceptH1(c *clientConn, conn net.Conn, t target) {
	r := h1.New(p.h1Config(c, conn, t.scheme+"://"+t.addr, func(q *h1.Request) (*h1.Route, error) {
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

// newFront wraps a client's connection to a listener for use by an http.Server. Requests to be recorded are
// relayed directly; only the others, for goproxy and the control endpoints, reach the http.Server.
func (p *Proxy) newFront(c *clientConn) net.Conn {
	base := ""
	if c.origin != nil {
		base = c.origin.Scheme + "://" + c.origin.Host
	}
	return h1.NewFront(p.ctx, p.h1Config(c, c, base, func(q *h1.Request) (*h1.Route, error) {
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

// isControlTarget reports whether a request target is the path of a control endpoint.
func isControlTarget(target string) bool {
	u, err := url.ParseRequestURI(target)
	return err == nil && isControl(u.Path)
}

// routeProxied returns the route for a request with an absolute URL, i.e. to the server named in it; nil if the
// request is not relayed by package h1.
func (p *Proxy) routeProxied(q *h1.Request) (*h1.Route, error) {
	// The path may be invalid, so parse only what precedes it.
	scheme, rest, _ := strings.Cut(q.Target, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &h1.Malformed{Status: http.StatusBadRequest, Reason: "the request target is not the URL of a server"}
	}
	t := targetOf(u)
	t.via = q.Header.Get(upstream.ViaHeader)
	if p.dialer.hasPassed(t.via) || !p.hosts.RecordsHost(withPort(u.Host, portFor(u))) {
		return nil, nil
	}

	// Header fields for proxies end here.
	to := p.routeH1(t, q, q.Target, false)
	to.Host, to.Drop = u.Host, slices.Concat(proxyFields, q.HopByHop())
	if to.Target == "" {
		to.Target = originForm(q.Method, q.Target)
	}
	return to, nil
}

// originForm converts a request target in absolute form (a URL) to the form that is sent to the server (a
// path).
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

// routeReverse returns the route for a request to a reverse proxy, i.e. to the server origin.
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

// urlOf returns the URL of a request with the target unchanged, even if it is not a valid path.
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

// routeH1 returns the route for a request to a server: directly, through a tunnel, or through an HTTP proxy
// that forwards requests. Requests for another host than that of the connection, and upgrades, always use a
// tunnel: the proxy would send them to another server, or drop the upgrade. shown is the recorded URL; bound is
// as in h1.Route.
func (p *Proxy) routeH1(t target, q *h1.Request, shown string, bound bool) *h1.Route {
	o := p.origins.get(t)
	o.gotRequest.Store(true)
	to := &h1.Route{Key: o, URL: shown, Bound: bound, Dial: o.dial}
	to.Unrecorded = !p.recordsURL(shown, t.addr)
	if proxy := o.forwarder; proxy != nil && !q.Upgrades() && strings.EqualFold(withPort(hostOfURL(shown), "80"), t.addr) {
		to.Key = proxyKey{o}
		to.Dial = o.dialForwarder
		to.Target = shown
		to.Add = captures.Headers{{Name: upstream.ViaHeader, Value: p.dialer.viaFor(t)}}
		if user := upstream.Authorization(proxy); user != "" {
			to.Add = append(to.Add, captures.Header{Name: "Proxy-Authorization", Value: user})
		}

		// The proxy may answer in place of the server.
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

// A proxyKey is the h1.Route.Key of connections to the user's forwarding proxy, which must differ from that of
// connections to the origin itself.
type proxyKey struct {
	// origin is the server to which the requests are addressed.
	*origin
}

// hostOfURL returns the host and port of a URL, even if the rest of the URL is invalid.
func hostOfURL(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// recordsURL reports whether a request to the server addr must be recorded according to the patterns with paths
// in Options.Only and Options.Skip. shown is the request's URL.
func (p *Proxy) recordsURL(shown, addr string) bool {
	if !p.hosts.HasPaths() {
		return true
	}
	scheme, rest, _ := strings.Cut(shown, "://")
	host := hostOfURL(shown)
	path := ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		path, _, _ = strings.Cut(rest[i:], "?")
	}
	return p.hosts.RecordsRequest(path, withPort(host, portFor(&url.URL{Scheme: scheme})), addr)
}

// h1Config returns the configuration of package h1 for relaying a client's requests. base is the URL of the
// server, or "" if each request names its own.
func (p *Proxy) h1Config(c *clientConn, conn net.Conn, base string, route func(*h1.Request) (*h1.Route, error)) h1.Config {
	return h1.Config{
		Client: conn, Route: route,
		Begin: func(q *h1.Request, to *h1.Route, server net.Conn) captures.Recording {
			return p.beginH1(c, q, to.URL, server)
		},
		Connected: func(rec captures.Recording, server net.Conn) {
			rec.Connection(p.tlsOf(server), server.RemoteAddr().String())
		},
		Refused: func(q *h1.Request, reason *h1.Malformed) { p.recordRefusedRequest(c, base, q, reason) },
		Explain: p.failureAnswer,
		Upgrade: func(client, server net.Conn, rec captures.Recording, q *h1.Request, answer captures.Headers) {
			p.upgrade(client, server, &exchange{
				proxy: p, ctx: p.ctx, rec: rec, requestHeader: q.Header, answerHeader: answer,
				upgraded: p.upgradedExchange(c, q, answer),
			})
		},
		Rewrite: p.rewriteH1(c),
		Admit:   p.beginRunning, Release: p.endRunning,
	}
}

// rewriteH1 returns the function that selects the rewriting rules for a request, or nil if there are no rules.
func (p *Proxy) rewriteH1(c *clientConn) func(*h1.Request, *h1.Route) rewrite.Exchange {
	if p.opts.Rewrite == nil {
		return nil
	}
	// Rules apply only to this version.
	connection := &captures.Exchange{HTTP: "1.1", Client: c.remote(), Source: p.opts.Source}
	return func(q *h1.Request, to *h1.Route) rewrite.Exchange {
		return p.opts.Rewrite.Begin(connection, rewrite.Request{Method: q.Method, URL: to.URL, Header: q.Header, Started: time.Now()})
	}
}

// upgradedExchange describes, for rewriting rules, a connection that has switched its protocol. answer are the
// headers of the response that switched it.
func (p *Proxy) upgradedExchange(c *clientConn, q *h1.Request, answer captures.Headers) *captures.Exchange {
	scheme, transport := c.target.scheme, captures.HTTP
	if strings.EqualFold(answer.Get("upgrade"), "websocket") {
		transport = captures.WebSocket
		scheme = map[string]string{"https": "wss"}[scheme]
		if scheme == "" {
			scheme = "ws"
		}
	}
	host := q.Host()
	if host == "" {
		host = c.target.addr
	}
	return &captures.Exchange{
		Transport: transport, Method: q.Method, URL: urlOf(scheme, host, q.Target), HTTP: q.Version, Status: http.StatusSwitchingProtocols,
		RequestHeaders: q.Header, ResponseHeaders: answer, Started: time.Now(), Client: c.remote(), Source: p.opts.Source,
	}
}

// beginH1 starts recording a request. shown is the recorded URL; server is the connection on which it will be
// sent, nil if none is open yet. It returns nil if the recording cannot be started.
func (p *Proxy) beginH1(c *clientConn, q *h1.Request, shown string, server net.Conn) captures.Recording {
	ex := captures.Exchange{
		Method: q.Method, URL: shown, HTTP: q.Version, RequestHeaders: q.Header,
		Started: time.Now(), Client: c.remote(), Source: p.opts.Source,
	}
	if server != nil {
		ex.TLS, ex.Server = p.tlsOf(server), addressOf(server)
	}
	rec, err := c.recorder.Begin(ex)
	if err != nil {
		p.log.Error("forwarded without recording", "url", shown, "err", err)
		return nil
	}
	return rec
}

// recordRefusedRequest records a malformed request, as far as it could be parsed. base is the URL of the
// server, or "".
func (p *Proxy) recordRefusedRequest(c *clientConn, base string, q *h1.Request, reason *h1.Malformed) {
	p.log.Warn("a malformed request is refused", "from", c.RemoteAddr(), "reason", reason)
	scheme, addr, _ := strings.Cut(base, "://")
	shown := urlOf(scheme, addr, q.Target)
	if !strings.HasPrefix(q.Target, "/") && strings.Contains(q.Target, "://") {
		addr = hostOfURL(q.Target)
	}

	// Without a host, nobody knows whether to record it.
	if addr == "" || !p.hosts.RecordsHost(withPort(addr, "80")) || !p.beginRunning() {
		return
	}
	defer p.endRunning()
	if rec := p.beginH1(c, q, shown, nil); rec != nil {
		rec.End(captures.Failed, h1.RefusedError(reason).Error())
	}
}

// failureAnswer returns the proxy's own response to a request that failed before the server received any of it;
// nil if the server may have received something. connected means that a connection to the server was open.
func (p *Proxy) failureAnswer(to *h1.Route, rec captures.Recording, err error, connected bool) *h1.Answer {
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

	// The server has received nothing, so an error response is safe.
	host := hostOfURL(to.URL)
	p.log.Warn("server not reached", "host", host, "err", err)
	status, text := failureText(host, err)
	a := &h1.Answer{Status: status, Text: text, Err: err, Unreached: true}
	a.Header = captures.Headers{{Name: "X-Content-Type-Options", Value: "nosniff"}}
	if status == http.StatusLoopDetected {
		a.Header = append(a.Header, captures.Header{Name: upstream.ViaHeader, Value: loopHeaderValue})
	}
	return a
}

// failureText returns the status and the text of the response if the server could not be connected to.
func failureText(host string, err error) (status int, text string) {
	text = fmt.Sprintf("unwire: cannot connect to %s: %v\n", host, err)
	if errors.As(err, new(*upstream.ConnectError)) {
		text = fmt.Sprintf("unwire: %v\n", err)
	}
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		text += "unwire: hint: if you trust the server, repeat the recording with --upstream-ca PEM (a file with the server's CA)\n"
	case errors.As(err, new(*untrustedCertificateError)):
		text += "unwire: hint: --upstream-insecure connects without this check, and marks each exchange\n"
	}
	if errors.Is(err, upstream.ErrLoop) {
		return http.StatusLoopDetected, text
	}
	return http.StatusBadGateway, text
}
