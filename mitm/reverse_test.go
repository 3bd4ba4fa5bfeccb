package mitm

import (
	"crypto/tls"
	"io"
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
