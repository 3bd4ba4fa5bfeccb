package mitm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/mitm/ca"
)

func TestRecordsWhatPasses(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		version := map[bool]string{false: "1.1", true: "2"}[h2]
		t.Run("HTTP "+version, func(t *testing.T) {
			origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("X-Proto", r.Proto)
				w.Header().Set("X-Agent", r.UserAgent())
				w.Header().Set("X-Encoding", r.Header.Get("Accept-Encoding"))
				w.Header().Set("Content-Encoding", "gzip") // not really
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write(append([]byte("echo "), body...))
			}))
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			req, _ := http.NewRequest("POST", origin.URL+"/a%2Fb?q=1", strings.NewReader("hello"))
			req.Header.Set("User-Agent", "tester")
			req.Header.Set("Accept-Encoding", "br")
			res, err := b.client(h2).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusTeapot || string(body) != "echo hello" {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
			if res.Header.Get("X-Proto") != "HTTP/"+strings.Replace(version, "2", "2.0", 1) || res.Header.Get("X-Agent") != "tester" || res.Header.Get("X-Encoding") != "br" {
				t.Errorf("the server saw %v", res.Header)
			}
			ex := b.one()
			if ex.Method != "POST" || ex.URL != origin.URL+"/a%2Fb?q=1" || ex.HTTP != version || ex.Status != http.StatusTeapot ||
				ex.Outcome != captures.Complete || ex.BytesUp != 5 || ex.BytesDown != 10 || ex.Source != "proxy" {
				t.Errorf("recorded %+v", ex)
			}
			if ex.Server != origin.Listener.Addr().String() || ex.Client == "" {
				t.Errorf("addresses %q, %q", ex.Client, ex.Server)
			}
			wantALPN := map[bool]string{true: "h2"}[h2] // the test server names no other
			if ex.TLS.Version != "1.3" || ex.TLS.ALPN != wantALPN || !strings.HasPrefix(ex.TLS.Cipher, "TLS_") || ex.TLS.Unverified {
				t.Errorf("TLS %+v", ex.TLS)
			}
			root := origin.Certificate() // signed by itself
			if ex.TLS.CA.Certificate != "" && ex.TLS.CA.Certificate != string(root.Raw) {
				t.Error("another certificate")
			}
			ex.TLS.CA.Certificate = ""
			if want := (captures.Authority{SHA256: fmt.Sprintf("%x", sha256.Sum256(root.Raw)), Subject: root.Subject.String()}); ex.TLS.CA != want {
				t.Errorf("trusted by %+v, want %+v", ex.TLS.CA, want)
			}
			if ex.RequestHeaders.Get("accept-encoding") != "br" || ex.ResponseHeaders.Get("content-encoding") != "gzip" {
				t.Errorf("headers %v, %v", ex.RequestHeaders, ex.ResponseHeaders)
			}
			if up, down := b.body(ex.ID, captures.Up), b.body(ex.ID, captures.Down); string(up) != "hello" || string(down) != "echo hello" {
				t.Errorf("bodies %q, %q", up, down)
			}
		})
	}
}

func TestPlainHTTP(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Connection") != "" || r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("X-Hop") != "" {
			t.Errorf("hop-by-hop fields came through: %v", r.Header)
		}
		_, _ = io.WriteString(w, r.RequestURI)
	}))
	defer origin.Close()
	b := newTestProxy(t, nil, nil)
	req, _ := http.NewRequest("GET", origin.URL+"/x?y", nil)
	req.Header.Set("Proxy-Connection", "keep-alive")
	req.Header.Set("Proxy-Authorization", "Basic Zm9vOmJhcg==")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	res, err := b.client(false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "/x?y" {
		t.Errorf("body %q", body)
	}
	if ex := b.one(); ex.URL != origin.URL+"/x?y" || ex.TLS != (captures.TLS{}) || ex.Outcome != captures.Complete {
		t.Errorf("recorded %+v", ex)
	}
}

func TestReverse(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(r.Proto+" "+r.Host+" "+r.URL.Path))
	}))
	host := strings.TrimPrefix(origin.URL, "https://")
	for _, h2 := range []bool{false, true} {
		b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			o.Reverse, _ = url.Parse(origin.URL + "/base")
			o.Source = "reverse"
		})
		c := newClient(t, false, nil, nil)
		if h2 {
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			c.Transport.(*http.Transport).Protocols = protocols
		}
		_, body := get(t, c, "http://"+b.addr+"/p/q")
		want := map[bool]string{false: "HTTP/1.1 ", true: "HTTP/2.0 "}[h2] + host + " /base/p/q"
		if string(body) != want {
			t.Errorf("body %q, want %q", body, want)
		}
		if ex := b.one(); ex.URL != origin.URL+"/base/p/q" || ex.Source != "reverse" {
			t.Errorf("recorded %+v", ex)
		}
	}
}

func TestReverseToHTTP1Origin(t *testing.T) {
	origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Reverse, _ = url.Parse(origin.URL) })
	c := newClient(t, false, nil, nil)
	c.Transport.(*http.Transport).Protocols.SetHTTP1(false)
	c.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	if _, body := get(t, c, "http://"+b.addr+"/"); string(body) != "HTTP/1.1" {
		t.Errorf("body %q", body)
	}
}

func TestNotAProxyRequest(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	res, body := get(t, newClient(t, false, nil, nil), "http://"+b.addr+"/x")
	if res.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte("recording proxy")) {
		t.Errorf("%d %q", res.StatusCode, body)
	}
}

func TestLoopIsRefused(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	res, body := get(t, b.client(false), "http://"+strings.Replace(b.addr, "127.0.0.1", "localhost", 1)+"/")
	if res.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte("the proxy itself")) {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	if ex := b.one(); ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "the proxy itself") {
		t.Errorf("recorded %+v", ex)
	}
}

// TestRefusedAddress: the proxy connects to no server that Refuse names, by whatever name a client asks for it.
func TestRefusedAddress(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	var asked atomic.Int32
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer page.Close()
	b.proxy.Refuse(page.Listener.Addr())
	_, port, err := net.SplitHostPort(page.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433"} {
		req, err := http.NewRequest("GET", "http://"+host+":"+port+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.client(false).Do(req)
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: status %d", host, res.StatusCode)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	ca, err := ca.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := new(store.Store)
	for name, o := range map[string]Options{
		"no CA":       {Store: store},
		"no store":    {CA: ca},
		"bad reverse": {CA: ca, Store: store, Reverse: &url.URL{Scheme: "ftp", Host: "x"}},
		"bad glob":    {CA: ca, Store: store, Skip: []string{"["}},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "mitm: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoCapturesAtOnce: two proxies, one behind the other's back, and one
// through the other, each with all of it.
func TestTwoCapturesAtOnce(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	first := newTestProxy(t, []*httptest.Server{origin}, nil)
	second := newTestProxy(t, []*httptest.Server{origin}, nil)
	clients := []*http.Client{first.client(true), second.client(true)}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := range 20 {
				res, err := c.Post(origin.URL, "", strings.NewReader(fmt.Sprint(i, n)))
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if string(body) != fmt.Sprint(i, n) {
					t.Errorf("capture %d: %q", i, body)
				}
			}
		})
	}
	wg.Wait()
	for i, b := range []*testProxy{first, second} {
		for n, ex := range b.recorded(20) {
			if got := string(b.body(ex.ID, captures.Down)); got != fmt.Sprint(i, n) {
				t.Errorf("capture %d, exchange %d: %q", i, n, got)
			}
		}
	}
}

// TestOwnPortsByAnyName: the proxy does not connect to its own listeners,
// whatever they are called.
func TestOwnPortsByAnyName(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	redirect := b.redirectAddr()
	hosts := []string{"127.0.0.1", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "[::1]", "127.1", "2130706433"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, own := range []string{b.addr, redirect} {
		_, port, _ := net.SplitHostPort(own)
		for _, host := range hosts {
			req, _ := http.NewRequest("GET", "http://"+host+":"+port+"/", nil)
			res, err := b.client(false).Do(req)
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusBadGateway || strings.Contains(string(body), "recording proxy.") {
				t.Errorf("%s: %d %q", host, res.StatusCode, body)
			}
			if host == "127.0.0.1" && !strings.Contains(string(body), "the proxy itself") {
				t.Errorf("%s: %q", host, body)
			}
		}
	}
}
