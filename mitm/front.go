package mitm

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/elazarl/goproxy"

	"unwire/mitm/h1"
	"unwire/mitm/upstream"
)

// infoText is the response to a request for the proxy itself, as from a browser.
const infoText = "This is unwire's recording proxy. Set it as the HTTP and HTTPS proxy of a client.\n"

// serveFront serves a request on one of the proxy's listeners that package h1 does not relay itself.
func (p *Proxy) serveFront(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*clientConn)
	if r.Method != http.MethodConnect {
		defer c.noteAnswered()
	}
	switch {
	case r.Method == http.MethodConnect || r.URL.IsAbs():
		p.serveProxied(w, r, c)
	case c.allowsControl && isControl(r.URL.Path):
		p.serveControl(w, r, c)
	default:
		http.Error(w, infoText, http.StatusBadRequest)
	}
}

// serveProxied serves a request to the proxy: CONNECT, or one with an absolute URL.
func (p *Proxy) serveProxied(w http.ResponseWriter, r *http.Request, c *clientConn) {
	via, ok := p.checkVia(w, r)
	if !ok {
		return
	}
	if r.Method == http.MethodConnect {
		c.via = via
		switch err := p.connectBeforeAnswer(r.Context(), httpsTarget(withPort(r.URL.Host, "443"), via)); {
		case errors.Is(err, upstream.ErrLoop):
			answerLoop(w, "unwire: "+err.Error()+"\n")
		case err != nil:
			http.Error(w, "unwire: "+err.Error(), http.StatusBadGateway)
		default:
			p.passthrough.ServeHTTP(&bufferedHijacker{w}, r)
		}
		return
	}

	// A cleartext request may be forwarded by the user's proxy.
	t := targetOf(r.URL)
	t.via = via
	if t.scheme == "http" && p.dialer.upstream.Proxies.Forwarder(t.names()...) != nil {
		r.Header.Set(upstream.ViaHeader, p.dialer.viaFor(t))
	}
	p.passthrough.ServeHTTP(w, r)
}

// newPassthrough returns the goproxy server that handles CONNECT requests, and forwards traffic that is not
// recorded.
func (p *Proxy) newPassthrough() *goproxy.ProxyHttpServer {
	passthrough := goproxy.NewProxyHttpServer()
	passthrough.Logger = discardLogger{}
	passthrough.KeepAcceptEncoding = true
	// The default would be the proxy in the environment, which may be this one.
	passthrough.ConnectDial = nil
	passthrough.ConnectDialWithReq = func(r *http.Request, _, addr string) (net.Conn, error) {
		c := r.Context().Value(clientKey{}).(*clientConn)
		return p.dialer.dial(r.Context(), httpsTarget(addr, c.via))
	}
	passthrough.Tr = p.newPassthroughTransport()
	passthrough.OnResponse().DoFunc(p.passthroughAnswer)
	passthrough.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		repeatable := mayRepeat(r)
		ctx.RoundTripper = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
			res, err := sendOnce(passthrough.Tr, r, repeatable)
			if errors.Is(err, errNotRepeated) {
				// Close the connection without an answer, so that the client decides whether to repeat.
				panic(http.ErrAbortHandler)
			}
			return res, err
		})
		return r, nil
	})

	// A host whose traffic may be recorded is intercepted; others are tunnelled.
	hijack := &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: p.connect}
	tunnel := &goproxy.ConnectAction{Action: goproxy.ConnectAccept}
	passthrough.OnRequest().HandleConnectFunc(func(addr string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		addr = withPort(addr, "443")
		if p.hosts.RecordsHost(addr) || !p.hosts.IsDecidedByAddress(addr) {
			return hijack, addr
		}
		return tunnel, addr
	})
	return passthrough
}

// passthroughAnswer returns the response to an unrecorded request: the server's, or an error response if the
// user's proxy refused or failed.
func (p *Proxy) passthroughAnswer(res *http.Response, ctx *goproxy.ProxyCtx) *http.Response {
	var failed *upstream.Error
	if t := targetOf(ctx.Req.URL); res != nil && upstream.IsRefusal(res) && t.scheme == "http" {
		if proxy := p.dialer.upstream.Proxies.Forwarder(t.names()...); proxy != nil {
			failed = upstream.Refusal(proxy, t.addr, res)
			_ = res.Body.Close()
		}
	} else if res == nil {
		errors.As(ctx.Error, &failed)
	}
	if failed == nil {
		return res
	}

	// A loop has a status of its own, which the other unwire recognizes.
	status := http.StatusBadGateway
	if errors.Is(failed, upstream.ErrLoop) {
		status = http.StatusLoopDetected
	}
	answer := goproxy.NewResponse(ctx.Req, goproxy.ContentTypeText, status, "unwire: "+failed.Error()+"\n")
	if status == http.StatusLoopDetected {
		answer.Header.Set(upstream.ViaHeader, loopHeaderValue)
	}
	return answer
}

// newPassthroughTransport returns the transport for requests that are not recorded.
func (p *Proxy) newPassthroughTransport() *http.Transport {
	proxies := p.dialer.upstream.Proxies
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "http" {
				return nil, nil
			}
			return proxies.Forwarder(targetOf(r.URL).names()...), nil
		},
		// The transport connects to an HTTP proxy or a server here.
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if proxy := proxies.At(addr); proxy != nil {
				return p.dialer.upstream.DialProxy(ctx, proxy)
			}
			return p.dialer.dial(ctx, target{scheme: "http", addr: addr})
		},
		DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if proxy := proxies.At(addr); proxy != nil {
				return p.dialer.upstream.DialProxy(ctx, proxy)
			}
			t := targetOf(&url.URL{Scheme: "https", Host: addr})
			return p.origins.get(t).dialTLS(ctx, protoH1)
		},
		DisableCompression: true,
		IdleConnTimeout:    idleConnTimeout,
	}
}

// connect handles a CONNECT request to a server whose traffic may be recorded, and intercepts the
// connection.
func (p *Proxy) connect(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
	c, ok := client.(*clientConn)
	if !ok {
		_ = client.Close()
		return
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = c.Close()
		return
	}
	p.intercept(c, withPort(r.URL.Host, "443"))
}

// A bufferedHijacker is a ResponseWriter whose Hijack returns a connection that still has the bytes which
// followed the request; goproxy would lose them.
type bufferedHijacker struct {
	// ResponseWriter is the wrapped writer of net/http.
	http.ResponseWriter
}

// Hijack returns the client's connection, from which all bytes after the request can be read.
func (h *bufferedHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	head, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		_ = conn.Close()
		return nil, nil, err
	}

	// The buffer is reused after the hijack.
	head = slices.Clone(head)
	if front, ok := conn.(*h1.Front); ok {
		head = append(head, front.Detach()...)
	}
	c := clientOf(conn)
	c.Unread(head)
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 16), bufio.NewWriter(c)), nil
}

// discardLogger discards the log messages of goproxy.
type discardLogger struct{}

// Printf does nothing.
func (discardLogger) Printf(string, ...any) {}

// serveTunnelled relays a request that arrived inside a CONNECT tunnel, to the tunnel's server.
func (p *Proxy) serveTunnelled(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*clientConn)
	defer c.noteAnswered()
	// The client speaks HTTP/2 and the origin does not.
	if c.origin != nil {
		p.serveReverse(w, r, c.origin)
		return
	}
	t := c.target
	shown := *r.URL
	shown.Scheme, shown.Host = t.scheme, r.Host
	if shown.Host == "" {
		shown.Host = t.addr
	}
	p.relay(w, r, t, &shown)
}

// serveReverse relays a request to the server origin, for which this proxy is a reverse proxy.
func (p *Proxy) serveReverse(w http.ResponseWriter, r *http.Request, origin *url.URL) {
	shown := *r.URL
	shown.Scheme, shown.Host = origin.Scheme, origin.Host
	if prefix := strings.TrimSuffix(origin.Path, "/"); prefix != "" {
		shown.RawPath = strings.TrimSuffix(origin.EscapedPath(), "/") + r.URL.EscapedPath()
		shown.Path = prefix + r.URL.Path
	}
	p.relay(w, r, targetOf(origin), &shown)
}
