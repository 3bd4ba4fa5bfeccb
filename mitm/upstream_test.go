package mitm

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/mitm/upstream"
)

var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// checkThrough checks that each exchange says which proxy it went through, and that
// the password is in none of the recording's files.
func (b *testProxy) checkThrough(u *userProxy, n int) []*captures.Exchange {
	b.tb.Helper()
	all := b.recorded(n)
	for _, ex := range all {
		if ex.TLS.Proxy != u.name || ex.Outcome != captures.Complete {
			b.tb.Errorf("%s %s: proxy %q, %s %s; want %s", ex.Method, ex.URL, ex.TLS.Proxy, ex.Outcome, ex.Error, u.name)
		}
		for _, h := range ex.RequestHeaders {
			if strings.HasPrefix(strings.ToLower(h.Name), "proxy-") || strings.EqualFold(h.Name, upstream.ViaHeader) {
				b.tb.Errorf("recorded %+v", h)
			}
		}
	}
	return all
}

// TestUpstreamProxy sends each kind of traffic through each kind of proxy.
func TestUpstreamProxy(t *testing.T) {
	for _, scheme := range proxySchemes {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			u := newUserProxy(t, scheme)
			secure := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
			gone := make(chan http.Header, 10)
			plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				gone <- r.Header
				serveHello(w, r)
			}))
			t.Cleanup(plain.Close)
			use := func(o *Options) {
				roots := o.UpstreamRoots
				u.use(o)
				if o.UpstreamRoots != roots {
					o.UpstreamRoots = o.UpstreamRoots.Clone()
					o.UpstreamRoots.AddCert(secure.Certificate())
				}
			}
			origins := []*httptest.Server{secure}
			b := newTestProxy(t, origins, use)
			for _, c := range []*http.Client{b.client(false), b.client(true), b.socks(false), b.socks(true)} {
				if _, body := get(t, c, secure.URL+"/x"); string(body) != "hello /x" {
					t.Errorf("%q", body)
				}
			}
			if got := u.conns.Load(); got == 0 {
				t.Error("nothing went through the proxy")
			}
			if _, body := get(t, b.client(false), plain.URL+"/p"); string(body) != "hello /p" {
				t.Errorf("%q", body)
			}
			if h := <-gone; h.Get(upstream.ViaHeader) != "" && scheme[0] == 's' || h.Get("Proxy-Authorization") != "" {
				t.Errorf("the server got %v", h)
			}
			if want := map[bool]int32{true: 1}[scheme[0] == 'h']; u.requests.Load() != want {
				t.Errorf("%d requests were sent to the proxy, want %d", u.requests.Load(), want)
			}
			b.checkThrough(u, 5)

			reverse := newTestProxy(t, origins, func(o *Options) { use(o); o.Reverse, _ = url.Parse(secure.URL) })
			if _, body := get(t, newClient(t, false, nil, nil), "http://"+reverse.addr+"/r"); string(body) != "hello /r" {
				t.Errorf("%q", body)
			}
			reverse.checkThrough(u, 1)

			unread := newTestProxy(t, origins, func(o *Options) { use(o); o.Skip = []string{"127.0.0.1"} })
			before := u.conns.Load()
			for _, c := range []*http.Client{direct2(unread, secure), newClient(t, false, nil, http.ProxyURL(unread.url()))} {
				from := map[bool]string{true: secure.URL, false: plain.URL}[c.Transport.(*http.Transport).TLSClientConfig.RootCAs != nil]
				if _, body := get(t, c, from+"/u"); string(body) != "hello /u" {
					t.Errorf("%q", body)
				}
			}
			if u.conns.Load() < before+1 {
				t.Error("what passes unread does not go through the proxy")
			}
			unread.recorded(0)
		})
	}
}

// direct2 is a client that trusts an origin, and goes through a proxy that leaves its
// traffic unread.
func direct2(b *testProxy, origin *httptest.Server) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(origin.Certificate())
	return newClient(b.tb, true, pool, http.ProxyURL(b.url()))
}

// TestUpstreamTransparent serves connections that were on their way to a server.
func TestUpstreamTransparent(t *testing.T) {
	for _, scheme := range proxySchemes {
		t.Run(scheme, func(t *testing.T) {
			u := newUserProxy(t, scheme)
			plain := httptest.NewServer(http.HandlerFunc(serveHello))
			t.Cleanup(plain.Close)
			b := newTestProxy(t, nil, u.use)
			near, far := net.Pipe()
			t.Cleanup(func() { near.Close() })
			go b.proxy.serveAddress(b.proxy.wrapClient(far, nil, nil), plain.Listener.Addr().String())
			_, _ = io.WriteString(near, "GET /t HTTP/1.1\r\nHost: "+plain.Listener.Addr().String()+"\r\nConnection: close\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(near), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); string(body) != "hello /t" {
				t.Errorf("%q", body)
			}
			b.checkThrough(u, 1)
		})
	}
}

// TestUpstreamUpgrade: a connection that changes its protocol gets a tunnel, in clear
// too.
func TestUpstreamUpgrade(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
		_, _ = io.Copy(conn, buf)
	}))
	t.Cleanup(origin.Close)
	addr := origin.Listener.Addr().String()
	for _, scheme := range proxySchemes {
		t.Run(scheme, func(t *testing.T) {
			u := newUserProxy(t, scheme)
			b := newTestProxy(t, nil, u.use)
			conn := b.tunnel(addr)
			_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nping")
			r := bufio.NewReader(conn)
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%v, %v", res, err)
			}
			got := make([]byte, 4)
			if _, err := io.ReadFull(r, got); err != nil || string(got) != "ping" {
				t.Fatalf("%q, %v", got, err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if _, err := io.ReadAll(r); err != nil {
				t.Errorf("end: %v", err)
			}
			if u.requests.Load() != 0 {
				t.Error("the upgrade was sent to the proxy, not through it")
			}
			b.checkThrough(u, 1)
		})
	}
}

// TestUpstreamGRPC has grpc-go's client call grpc-go's server.
func TestUpstreamGRPC(t *testing.T) {
	for _, scheme := range proxySchemes {
		t.Run(scheme, func(t *testing.T) {
			u := newUserProxy(t, scheme)
			origin := grpcServer(t)
			b := newTestProxy(t, nil, func(o *Options) {
				u.use(o)
				if o.UpstreamRoots = x509.NewCertPool(); u.roots != nil {
					o.UpstreamRoots = u.roots.Clone()
				}
				o.UpstreamRoots.AddCert(origin.Certificate())
			})
			addr := strings.TrimPrefix(origin.URL, "https://")
			conn, err := grpc.NewClient("passthrough:///"+addr,
				grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(b.roots(), "127.0.0.1")),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return b.tunnel(addr), nil }))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
			defer cancel()
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/t.v1.S/Bidi")
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"a", "b", "c"} {
				got := new(wrapperspb.StringValue)
				if err := stream.SendMsg(wrapperspb.String(word)); err != nil {
					t.Fatal(err)
				}
				if err := stream.RecvMsg(got); err != nil || got.GetValue() != "ack "+word {
					t.Fatalf("%q, %v", got.GetValue(), err)
				}
			}
			_ = stream.CloseSend()
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
				t.Errorf("end: %v", err)
			}
			b.checkThrough(u, 1)
		})
	}
}

// TestUpstreamErrors: an error of a proxy names it, without its password, and says
// what to do, in the exchange and to the client.
func TestUpstreamErrors(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	nonsense, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nonsense.Close() })
	go func() {
		for {
			c, err := nonsense.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_ = c.Close()
		}
	}()
	proxies := make(map[string]*userProxy)
	for _, scheme := range proxySchemes {
		proxies[scheme] = newUserProxy(t, scheme)
	}
	with := func(scheme string, user *url.Userinfo) *url.URL {
		return &url.URL{Scheme: scheme, User: user, Host: proxies[scheme].url.Host}
	}
	wrong := url.UserPassword("user", proxyPassword+"2")
	down := "https://" + nobody
	for name, c := range map[string]struct {
		proxy *url.URL
		to    string
		wants []string
	}{
		"http, no user":          {with("http", nil), origin.URL, []string{"requires a user and password (407", "as in USER:PASSWORD@"}},
		"http, wrong password":   {with("http", wrong), origin.URL, []string{"rejected the user and password (407"}},
		"http, forbidden":        {proxies["http"].url, "https://forbidden.invalid", []string{"does not allow connections to forbidden.invalid:443 (403", "NO_PROXY"}},
		"http, server down":      {proxies["http"].url, down, []string{"could not connect to " + nobody + " (502"}},
		"https, not trusted":     {proxies["https"].url, origin.URL, []string{"the proxy's certificate is not trusted", "--upstream-ca"}},
		"https, is http":         {&url.URL{Scheme: "https", User: wrong, Host: proxies["http"].url.Host}, origin.URL, []string{"does not use TLS", "http://"}},
		"http, is https":         {&url.URL{Scheme: "http", User: wrong, Host: proxies["https"].url.Host}, origin.URL, []string{"https://"}},
		"http, is socks":         {&url.URL{Scheme: "http", User: wrong, Host: proxies["socks5"].url.Host}, origin.URL, []string{"socks5h://"}},
		"http, nonsense":         {&url.URL{Scheme: "http", User: wrong, Host: nonsense.Addr().String()}, origin.URL, []string{"does not answer like an HTTP proxy"}},
		"http, unreachable":      {&url.URL{Scheme: "http", User: wrong, Host: nobody}, origin.URL, []string{"cannot be reached: connection refused", "start the proxy"}},
		"socks, no user":         {with("socks5h", nil), origin.URL, []string{"requires a user and password", "as in USER:PASSWORD@"}},
		"socks, wrong password":  {with("socks5h", wrong), origin.URL, []string{"rejected the user and password"}},
		"socks, server down":     {proxies["socks5h"].url, down, []string{"could not connect to " + nobody + " (connection refused)"}},
		"socks, is http":         {&url.URL{Scheme: "socks5h", User: wrong, Host: proxies["http"].url.Host}, origin.URL, []string{"http://"}},
		"socks, nonsense":        {&url.URL{Scheme: "socks5", User: wrong, Host: nonsense.Addr().String()}, origin.URL, []string{"does not answer like a SOCKS 5 proxy"}},
		"socks, unreachable":     {&url.URL{Scheme: "socks5", User: wrong, Host: nobody}, origin.URL, []string{"cannot be reached: connection refused"}},
		"in clear, no user":      {with("http", nil), "http://127.0.0.1:2", []string{"requires a user and password (407"}},
		"in clear, unreachable":  {&url.URL{Scheme: "http", User: wrong, Host: nobody}, "http://127.0.0.1:2", []string{"cannot be reached: connection refused"}},
		"in clear, not trusted":  {proxies["https"].url, "http://127.0.0.1:2", []string{"the proxy's certificate is not trusted"}},
		"in clear, socks, wrong": {with("socks5", wrong), "http://127.0.0.1:2", []string{"rejected the user and password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, h2 := range []bool{false, true} {
				if h2 && strings.HasPrefix(c.to, "http:") {
					continue
				}
				b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
					o.UpstreamProxies = upstream.Always(c.proxy)
					if strings.Contains(name, "not trusted") {
						o.UpstreamRoots = x509.NewCertPool() // all test servers have one certificate
					}
				})
				res, body := get(t, b.client(h2), c.to)
				ex := b.one()
				if res.StatusCode != http.StatusBadGateway || ex.Outcome != captures.Failed {
					t.Errorf("%d, %s", res.StatusCode, ex.Outcome)
				}
				for _, text := range []string{string(body), ex.Error} {
					for _, want := range append(c.wants, "upstream proxy "+upstream.Name(c.proxy)+": ") {
						if !strings.Contains(text, want) {
							t.Errorf("%s\nlacks %q", text, want)
						}
					}
					if strings.Contains(text, "made-up") || strings.Contains(text, "proxyconnect") {
						t.Errorf("%s", text)
					}
				}
			}
		})
	}
}

// TestUpstreamOfUnread: who is tunnelled unread is told why there is no tunnel.
func TestUpstreamOfUnread(t *testing.T) {
	u := newUserProxy(t, "http")
	u.url.User = nil
	b := newTestProxy(t, nil, func(o *Options) { u.use(o); o.Skip = []string{"localhost"} })
	res, body := get(t, b.client(false), "http://localhost:2/")
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "requires a user and password") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if _, err := b.client(false).Get("https://localhost:2/"); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("%v", err)
	}
}

// TestUpstreamChain: unwire goes through another one, by HTTP and by SOCKS, and both
// record.
func TestUpstreamChain(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(upstream.ViaHeader) != "" {
			t.Errorf("the server got %v", r.Header)
		}
		serveHello(w, r)
	}))
	t.Cleanup(plain.Close)
	for _, scheme := range []string{"http", "socks5h"} {
		outer := newTestProxy(t, []*httptest.Server{origin}, nil)
		u := &userProxy{url: &url.URL{Scheme: scheme, Host: outer.addr}, name: scheme + "://" + outer.addr, roots: outer.roots()}
		inner := newTestProxy(t, nil, u.use)
		for _, h2 := range []bool{false, true} {
			if _, body := get(t, inner.client(h2), origin.URL+"/x"); string(body) != "hello /x" {
				t.Errorf("%s: %q", scheme, body)
			}
		}
		if _, body := get(t, inner.client(false), plain.URL+"/p"); string(body) != "hello /p" {
			t.Errorf("%s: %q", scheme, body)
		}
		inner.checkThrough(u, 3)
		outer.recorded(3)
	}
}

// TestUpstreamLoop: two that point at each other stop after one round.
func TestUpstreamLoop(t *testing.T) {
	for _, schemes := range [][2]string{{"http", "http"}, {"socks5h", "socks5h"}, {"http", "socks5h"}, {"socks5h", "http"}} {
		for _, skip := range [][]string{nil, {"*"}} {
			t.Run(strings.Join(schemes[:], " ")+strings.Join(skip, ""), func(t *testing.T) {
				var second *testProxy
				firstURL := new(url.URL)
				second = newTestProxy(t, nil, func(o *Options) { o.UpstreamProxies, o.Skip = upstream.Always(firstURL), skip })
				first := newTestProxy(t, nil, func(o *Options) {
					o.UpstreamProxies = upstream.Always(&url.URL{Scheme: schemes[0], Host: second.addr})
				})
				firstURL.Scheme, firstURL.Host = schemes[1], first.addr
				began := time.Now()
				for _, to := range []string{"http://127.0.0.1:2/", "https://127.0.0.1:2/"} {
					_, body := get(t, first.client(false), to)
					if !strings.Contains(string(body), "leads back to this instance of unwire") && !(skip != nil && strings.Contains(string(body), "did not reach")) {
						t.Errorf("%s: %s", to, body)
					}
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				for _, ex := range first.recorded(2) {
					if ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "upstream proxy") {
						t.Errorf("recorded %s %s", ex.Outcome, ex.Error)
					}
				}
			})
		}
	}
}

// TestUpstreamIsItself: a proxy that is sent through itself says so.
func TestUpstreamIsItself(t *testing.T) {
	itself := new(url.URL)
	b := newTestProxy(t, nil, func(o *Options) { o.UpstreamProxies = upstream.Always(itself) })
	itself.Scheme, itself.Host = "http", strings.Replace(b.addr, "127.0.0.1", "localhost", 1)
	_, body := get(t, b.client(true), "https://127.0.0.1:2/")
	if !strings.Contains(string(body), "upstream proxy http://localhost:") || !strings.Contains(string(body), "the proxy itself") {
		t.Errorf("%s", body)
	}
}

// TestUpstreamPasswordIsNotRecorded looks into the files of a recording.
func TestUpstreamPasswordIsNotRecorded(t *testing.T) {
	u := newUserProxy(t, "http")
	u.url.User = url.UserPassword("user", "made-up-pass-word")
	plain := httptest.NewServer(http.HandlerFunc(serveHello))
	t.Cleanup(plain.Close)
	b := newTestProxy(t, nil, u.use)
	get(t, b.client(false), plain.URL)
	get(t, b.client(true), "https://"+nobody)
	b.recorded(2)
	for _, name := range []string{b.store.Path, b.store.Path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, secret := range []string{"made-up-pass-word", "dXNlcjptYWRlLXVw"} {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s holds %s", name, secret)
			}
		}
	}
}

// TestUpstreamNoProxy has a server at an address of this machine that is none of
// loopback, to which the environment's proxies apply; its packets stay here.
func TestUpstreamNoProxy(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var ln net.Listener
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			if ln, err = net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0")); err == nil {
				break
			}
		}
	}
	if ln == nil {
		t.Log("no network but loopback here; the rules are tested by package upstream")
		return
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(serveHello)}}
	s.Start()
	t.Cleanup(s.Close)
	host, _, _ := net.SplitHostPort(ln.Addr().String())
	for noProxy, direct := range map[string]bool{"": false, "other.example": false, host: true, host + "/32": true, "*": true} {
		u := newUserProxy(t, "http")
		env := map[string]string{"HTTP_PROXY": u.url.String(), "NO_PROXY": noProxy}
		b := newTestProxy(t, nil, func(o *Options) {
			if o.UpstreamProxies, _, err = upstream.FromEnvironment(func(name string) string { return env[name] }, ""); err != nil {
				t.Fatal(err)
			}
		})
		if _, body := get(t, b.client(false), "http://"+ln.Addr().String()+"/n"); string(body) != "hello /n" {
			t.Errorf("%q", body)
		}
		if ex := b.one(); (ex.TLS.Proxy == "") != direct || (u.requests.Load() == 0) != direct {
			t.Errorf("NO_PROXY=%s: proxy %q, %d requests to it", noProxy, ex.TLS.Proxy, u.requests.Load())
		}
	}
}
