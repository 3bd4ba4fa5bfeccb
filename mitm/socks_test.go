package mitm

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/net/proxy"

	"unwire/captures/need"
)

// socks is an HTTP client that uses the proxy by SOCKS 5.
func (b *testProxy) socks(h2 bool) *http.Client {
	b.tb.Helper()
	d, err := proxy.SOCKS5("tcp", b.addr, nil, proxy.Direct)
	if err != nil {
		b.tb.Fatal(err)
	}
	c := newClient(b.tb, h2, b.roots(), nil)
	c.Transport.(*http.Transport).DialContext = d.(proxy.ContextDialer).DialContext
	return c
}

func TestSOCKS(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	plain := httptest.NewServer(http.HandlerFunc(serveHello))
	t.Cleanup(plain.Close)
	byName := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	for _, c := range []struct {
		url string
		h2  bool
	}{{origin.URL, true}, {origin.URL, false}, {plain.URL, false}, {byName, false}} {
		_, body := get(t, b.socks(c.h2), c.url+"/socks")
		if string(body) != "hello /socks" {
			t.Errorf("%s: %q", c.url, body)
		}
	}
	if got := b.recorded(4); got[0].HTTP != "2" || got[1].HTTP != "1.1" || got[3].URL != byName+"/socks" {
		t.Errorf("recorded %+v", got)
	}
}

func TestSOCKSIPv6(t *testing.T) {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Log("no IPv6 here; the address is read by TestSOCKSReplies:", err)
		return
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(serveHello)}}
	s.Start()
	t.Cleanup(s.Close)
	b := newTestProxy(t, nil, nil)
	if _, body := get(t, b.socks(false), "http://"+ln.Addr().String()+"/six"); string(body) != "hello /six" {
		t.Errorf("%q", body)
	}
	b.recorded(1)
}

func TestSOCKSCurl(t *testing.T) {
	path := need.Curl(t)
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	for _, option := range []string{"--socks5", "--socks5-hostname"} {
		out, err := exec.Command(path, "-sS", "--noproxy", "", "--cacert", b.ca.CertFile, option, b.addr, origin.URL+"/curl").CombinedOutput()
		if err != nil || string(out) != "hello /curl" {
			t.Errorf("%s: %v: %s", option, err, out)
		}
	}
	b.recorded(2)
}

// TestSOCKSReplies: what is not served is answered with the reason.
func TestSOCKSReplies(t *testing.T) {
	port := int(netip.MustParseAddrPort(nobody).Port())
	b := newTestProxy(t, nil, func(o *Options) { o.Skip = []string{"localhost"} })
	own := int(netip.MustParseAddrPort(b.addr).Port())
	name := func(host string, port int) string {
		return "\x05\x01\x00\x03" + string([]byte{byte(len(host))}) + host + string([]byte{byte(port >> 8), byte(port)})
	}
	const greeting = "\x05\x01\x00"
	for what, c := range map[string]struct {
		send string
		want string
	}{
		"authentication only":  {"\x05\x01\x02", "\x05\xff"},
		"no method":            {"\x05\x00", "\x05\xff"},
		"bind":                 {greeting + "\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x01", "\x05\x00\x05\x07"},
		"kind of address":      {greeting + "\x05\x01\x00\x09", "\x05\x00\x05\x08"},
		"empty name":           {greeting + name("", 80), "\x05\x00\x05\x01"},
		"name with a line end": {greeting + name("a\r\nb", 80), "\x05\x00\x05\x01"},
		"refused":              {greeting + name("localhost", port), "\x05\x00\x05\x05"},
		"the proxy itself":     {greeting + name("localhost", own), "\x05\x00\x05\x02"},
		"version of request":   {greeting + "\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x01", "\x05\x00\x05\x01"},
	} {
		t.Run(what, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for i := range len(c.send) { // a byte at a time
				if _, err := conn.Write([]byte{c.send[i]}); err != nil {
					break // answered before it had all
				}
			}
			expectLine(t, conn, c.want)
		})
	}
}

// TestSOCKSPasses: a host that is not recorded is tunnelled.
func TestSOCKSPasses(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(serveHello))
	t.Cleanup(plain.Close)
	b := newTestProxy(t, nil, func(o *Options) { o.Skip = []string{"localhost"} })
	if _, body := get(t, b.socks(false), strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)+"/past"); string(body) != "hello /past" {
		t.Errorf("%q", body)
	}
	b.recorded(0)
}
