package mitm

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"unwire/captures"
)

// TestReverseTLS has clients speak TLS to a reverse listener that others speak in clear to.
func TestReverseTLS(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Host)
	})
	clear1 := httptest.NewServer(answer)
	t.Cleanup(clear1.Close)
	clear2 := httptest.NewUnstartedServer(answer)
	clear2.Config.Protocols = new(http.Protocols)
	clear2.Config.Protocols.SetHTTP1(true)
	clear2.Config.Protocols.SetUnencryptedHTTP2(true)
	clear2.Start()
	t.Cleanup(clear2.Close)

	for name, c := range map[string]struct {
		origin *httptest.Server
		h2     bool // the server speaks it
	}{
		"https, HTTP/2":   {newTLSOrigin(t, true, answer), true},
		"https, HTTP/1.1": {newTLSOrigin(t, false, answer), false},
		"http, HTTP/2":    {clear2, true},
		"http, HTTP/1.1":  {clear1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestProxy(t, []*httptest.Server{c.origin}, func(o *Options) { o.Reverse, _ = url.Parse(c.origin.URL) })
			n := 0
			for _, wants2 := range []bool{true, false} {
				client := newClient(t, wants2, b.roots(), nil)
				client.Transport.(*http.Transport).Protocols.SetHTTP1(true)
				proto := "HTTP/1.1"
				if wants2 && c.h2 {
					proto = "HTTP/2.0"
				}
				for _, base := range []string{"https://" + b.addr, "https://" + strings.Replace(b.addr, "127.0.0.1", "localhost", 1), "http://" + b.addr} {
					if base[:5] == "http:" && wants2 {
						continue // in clear there is no choice
					}
					res, body := get(t, client, base+"/x")
					if want := proto + " " + strings.SplitN(c.origin.URL, "//", 2)[1]; string(body) != want || res.Proto != proto {
						t.Errorf("%s: %s %q, want %q", base, res.Proto, body, want)
					}
					n++
				}
			}
			for _, ex := range b.recorded(n) {
				if ex.URL != c.origin.URL+"/x" || ex.Outcome != captures.Complete {
					t.Errorf("recorded %+v", ex)
				}
			}
		})
	}
}

// TestReverseTLSOther refuses a client whose protocol is not HTTP, instead of guessing.
func TestReverseTLSOther(t *testing.T) {
	t.Parallel()
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Reverse, _ = url.Parse(origin.URL) })
	conn, err := tls.Dial("tcp", b.addr, &tls.Config{RootCAs: b.roots(), NextProtos: []string{"mqtt"}})
	if err == nil {
		_ = conn.Close()
		t.Fatal("connected")
	}
	if !strings.Contains(err.Error(), "no application protocol") {
		t.Error(err)
	}
}

// TestReverseRing: reverse proxies that lead back to each other answer at once, with the
// reason, and others go on as before.
func TestReverseRing(t *testing.T) {
	t.Parallel()
	secure := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	for name, ring := range map[string][]string{
		"two": {"http", "http"}, "two in TLS": {"https", "https"}, "two, one in TLS": {"http", "https"}, "three": {"http", "https", "http"},
	} {
		t.Run(name, func(t *testing.T) {
			var proxies []*testProxy
			var addrs []string
			serve := func(ln net.Listener, scheme, to string) {
				b := newTestProxy(t, []*httptest.Server{secure}, func(o *Options) { o.UpstreamInsecure = true })
				proxies = append(proxies, b)
				go func() { _ = b.proxy.ServeReverse(ln, &url.URL{Scheme: scheme, Host: to}) }()
			}
			listeners := make([]net.Listener, len(ring)+2)
			for i := range listeners {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				listeners[i], addrs = ln, append(addrs, ln.Addr().String())
			}
			for i, scheme := range ring {
				serve(listeners[i], scheme, addrs[(i+1)%len(ring)])
			}
			before, beside := len(ring), len(ring)+1
			serve(listeners[before], "http", addrs[0])
			serve(listeners[beside], "https", secure.Listener.Addr().String())

			for _, at := range []int{0, 1, before} {
				for _, h2 := range []bool{false, true} {
					c := newClient(t, false, nil, nil)
					if h2 {
						protocols := new(http.Protocols)
						protocols.SetUnencryptedHTTP2(true)
						c.Transport.(*http.Transport).Protocols = protocols
					}
					c.Timeout = matrixTimeout
					res, body := get(t, c, "http://"+addrs[at]+"/round")
					if res.StatusCode != http.StatusLoopDetected || !strings.Contains(string(body), "leads back to this one") {
						t.Errorf("at %d, HTTP/2 %v: %s %q", at, h2, res.Status, body)
					}
				}
				for _, ex := range proxies[at].recorded(2) {
					if ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "leads back to this one") {
						t.Errorf("recorded %s %q", ex.Outcome, ex.Error)
					}
				}
			}
			if _, body := get(t, newClient(t, false, nil, nil), "http://"+addrs[beside]+"/beside"); string(body) != "hello /beside" {
				t.Errorf("beside the ring: %q", body)
			}
		})
	}
}
