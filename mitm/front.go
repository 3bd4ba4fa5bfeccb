package mitm

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/elazarl/goproxy"
)

const infoText = "This is unwire's recording proxy. Set it as the HTTP and HTTPS proxy of a client.\n"

// serveFront serves a request that came in through a listener, by its kind.
func (p *Proxy) serveFront(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*clientConn)
	if r.Method != http.MethodConnect {
		defer c.noteAnswered()
	}
	switch {
	case r.Method == http.MethodConnect:
		p.passthrough.ServeHTTP(&bufferedHijacker{w, p}, r)
	case r.URL.IsAbs() && p.hosts.recordsHost(withPort(r.URL.Host, portFor(r.URL))):
		shown := *r.URL
		p.relay(w, r, targetOf(&shown), &shown)
	case r.URL.IsAbs():
		p.passthrough.ServeHTTP(w, r)
	case c.allowsControl && isControl(r):
		p.serveControl(w, r, c)
	case c.origin != nil:
		p.serveReverse(w, r, c.origin)
	default:
		http.Error(w, infoText, http.StatusBadRequest)
	}
}

// newPassthrough returns the goproxy that answers CONNECT and carries what is not
// recorded.
func (p *Proxy) newPassthrough() *goproxy.ProxyHttpServer {
	passthrough := goproxy.NewProxyHttpServer()
	passthrough.Logger = discardLogger{}
	passthrough.KeepAcceptEncoding = true
	// The default is from the environment, which may name this proxy.
	passthrough.ConnectDial = nil
	passthrough.Tr = &http.Transport{
		DialContext:        p.dialer.dial,
		DisableCompression: true,
		IdleConnTimeout:    idleConnTimeout,
	}
	passthrough.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		repeatable := mayRepeat(r)
		ctx.RoundTripper = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
			res, err := sendOnce(passthrough.Tr, r, repeatable)
			if errors.Is(err, errNotRepeated) {
				panic(http.ErrAbortHandler) // the client is to decide, not to get an answer
			}
			return res, err
		})
		return r, nil
	})
	hijack := &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: p.connect}
	tunnel := &goproxy.ConnectAction{Action: goproxy.ConnectAccept}
	passthrough.OnRequest().HandleConnectFunc(func(addr string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		addr = withPort(addr, "443")
		if p.hosts.recordsHost(addr) || !p.hosts.isDecidedByAddress(addr) {
			return hijack, addr
		}
		return tunnel, addr
	})
	return passthrough
}

// connect serves a CONNECT whose traffic is recorded.
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

// A bufferedHijacker is a response whose connection, once hijacked, keeps the bytes
// that came behind the request, which goproxy would lose, and is closed by Shutdown.
type bufferedHijacker struct {
	http.ResponseWriter
	p *Proxy
}

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
	c, ok := conn.(*clientConn) // wrapped when it was accepted
	if !ok {
		c = h.p.wrapClient(conn, nil)
	}
	c.peeked = append(append([]byte(nil), head...), c.peeked...)
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 16), bufio.NewWriter(c)), nil
}

// discardLogger drops goproxy's lines: it prints them only when told to be verbose.
type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

// serveTunnelled relays a request that came through a tunnel.
func (p *Proxy) serveTunnelled(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*clientConn)
	defer c.noteAnswered()
	if c.origin != nil { // by HTTP/2, where the origin has none
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

// serveReverse relays a request to the origin that the listener stands before.
func (p *Proxy) serveReverse(w http.ResponseWriter, r *http.Request, origin *url.URL) {
	shown := *r.URL
	shown.Scheme, shown.Host = origin.Scheme, origin.Host
	if prefix := strings.TrimSuffix(origin.Path, "/"); prefix != "" {
		shown.RawPath = strings.TrimSuffix(origin.EscapedPath(), "/") + r.URL.EscapedPath()
		shown.Path = prefix + r.URL.Path
	}
	p.relay(w, r, targetOf(origin), &shown)
}
