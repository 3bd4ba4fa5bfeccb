package mitm

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/armon/go-socks5"
	"github.com/elazarl/goproxy"

	"unwire/mitm/upstream"
)

const (
	proxyUser     = "user:with@signs"
	proxyPassword = "made-up/pass word"
)

// A userProxy is a proxy as a user may have to go through.
type userProxy struct {
	// url has user and password, name has not.
	url   *url.URL
	name  string
	roots *x509.CertPool

	// conns counts the connections to servers, requests what was sent to the proxy
	// instead.
	conns, requests atomic.Int32
}

func (u *userProxy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	u.conns.Add(1)
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (u *userProxy) use(o *Options) {
	o.UpstreamProxies = upstream.Always(u.url)
	if u.roots != nil {
		o.UpstreamRoots = u.roots
	}
}

// newUserProxy starts a proxy of a scheme that asks for user and password.
func newUserProxy(t *testing.T, scheme string) *userProxy {
	t.Helper()
	u := new(userProxy)
	var addr string
	switch scheme {
	case "http", "https":
		s := httptest.NewUnstartedServer(u.httpHandler())
		if scheme == "https" {
			s.StartTLS()
			u.roots = x509.NewCertPool()
			u.roots.AddCert(s.Certificate())
		} else {
			s.Start()
		}
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		addr = s.Listener.Addr().String()
	default:
		s, err := socks5.New(&socks5.Config{
			Credentials: socks5.StaticCredentials{proxyUser: proxyPassword}, Dial: u.dial, Logger: log.New(io.Discard, "", 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go func() { _ = s.Serve(ln) }()
		addr = ln.Addr().String()
	}
	u.url = &url.URL{Scheme: scheme, User: url.UserPassword(proxyUser, proxyPassword), Host: addr}
	u.name = scheme + "://" + addr
	return u
}

// httpHandler is goproxy behind a check of the password. CONNECT is for any port but
// 80, as is usual.
func (u *userProxy) httpHandler() http.Handler {
	g := goproxy.NewProxyHttpServer()
	g.Tr = &http.Transport{DialContext: u.dial}
	g.ConnectDial = func(network, addr string) (net.Conn, error) { return u.dial(context.Background(), network, addr) }
	g.OnRequest().DoFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		u.requests.Add(1)
		return r, nil
	})
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+proxyPassword))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != want:
			w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
			http.Error(w, "who are you", http.StatusProxyAuthRequired)
		case strings.Contains(r.Host, "forbidden"):
			http.Error(w, "no", http.StatusForbidden)
		case r.Method == http.MethodConnect && r.TLS != nil:
			u.tunnel(w, r) // goproxy loses half-closes in TLS
		default:
			g.ServeHTTP(w, r)
		}
	})
}

// tunnel connects the client with a server; the end of a direction is passed on.
func (u *userProxy) tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := u.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, rw)
		_ = server.(halfCloserOnce).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.(halfCloserOnce).CloseWrite()
	})
	both.Wait()
}
