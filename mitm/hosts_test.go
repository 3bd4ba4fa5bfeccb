package mitm

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"unwire/mitm/ca"
)

func TestHostsLeftAlone(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())
	for name, c := range map[string]struct {
		set      func(*Options)
		host     string
		recorded bool
	}{
		"skipped":              {func(o *Options) { o.Skip = []string{"*.example", "LOCALHOST"} }, "localhost", false},
		"skipped with port":    {func(o *Options) { o.Skip = []string{"localhost:" + port} }, "localhost", false},
		"other port skipped":   {func(o *Options) { o.Skip = []string{"localhost:1"} }, "localhost", true},
		"not among the only":   {func(o *Options) { o.Only = []string{"*.cursor.sh"} }, "localhost", false},
		"among the only":       {func(o *Options) { o.Only = []string{"local*"} }, "localhost", true},
		"address, skipped SNI": {func(o *Options) { o.Skip = []string{"example.com"} }, "127.0.0.1", false},
		"address, only SNI":    {func(o *Options) { o.Only = []string{"example.com"} }, "127.0.0.1", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestProxy(t, []*httptest.Server{origin}, c.set)
			roots := x509.NewCertPool()
			if c.recorded {
				roots.AddCert(b.ca.Certificate)
			} else {
				roots.AddCert(origin.Certificate())
			}
			client := newClient(t, true, roots, http.ProxyURL(b.url()))
			client.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // which its certificate is for
			if _, body := get(t, client, "https://"+c.host+":"+port); string(body) != "ok" {
				t.Errorf("body %q", body)
			}
			client.CloseIdleConnections()
			b.recorded(map[bool]int{true: 1}[c.recorded])
		})
	}
}

// A CA that is for some hosts has the others pass unread.
func TestHostsOfCA(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())
	for name, c := range map[string]struct {
		hosts     []string
		host, sni string
		recorded  bool
	}{
		"the name":                {hosts: []string{"example.com"}, host: "127.0.0.1", sni: "example.com", recorded: true},
		"another name":            {hosts: []string{"example.org"}, host: "127.0.0.1", sni: "example.com"},
		"both names":              {hosts: []string{"localhost", "example.com"}, host: "localhost", sni: "example.com", recorded: true},
		"not the name in TLS":     {hosts: []string{"localhost"}, host: "localhost", sni: "example.com"},
		"the address":             {hosts: []string{"127.0.0.1"}, host: "127.0.0.1", sni: "127.0.0.1", recorded: true},
		"another address":         {hosts: []string{"127.0.0.2"}, host: "127.0.0.1", sni: "127.0.0.1"},
		"a name, not the address": {hosts: []string{"example.com"}, host: "127.0.0.1", sni: "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
				authority, err := ca.New(t.TempDir(), c.hosts)
				if err != nil {
					t.Fatal(err)
				}
				o.CA = authority
			})
			roots := x509.NewCertPool()
			if c.recorded {
				roots.AddCert(b.proxy.opts.CA.Certificate)
			} else {
				roots.AddCert(origin.Certificate())
			}
			client := newClient(t, true, roots, http.ProxyURL(b.url()))
			client.Transport.(*http.Transport).TLSClientConfig.ServerName = c.sni
			if _, body := get(t, client, "https://"+c.host+":"+port); string(body) != "ok" {
				t.Errorf("body %q", body)
			}
			client.CloseIdleConnections()
			b.recorded(map[bool]int{true: 1}[c.recorded])
		})
	}
}

func TestSkippedPlainHTTP(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding"))
	}))
	defer origin.Close()
	b := newTestProxy(t, nil, func(o *Options) { o.Skip = []string{"127.0.0.*"} })
	req, _ := http.NewRequest("GET", origin.URL, nil)
	req.Header.Set("Accept-Encoding", "br")
	res, err := b.client(false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "br" {
		t.Errorf("body %q", body)
	}
	b.recorded(0)
}
