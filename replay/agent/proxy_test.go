package agent_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"unwire/proto"
	"unwire/replay/agent"
)

// proxyTo returns a handler that hands requests on, and flushes at once.
func proxyTo(t *testing.T, u *url.URL, roots *x509.CertPool) http.Handler {
	p := httputil.NewSingleHostReverseProxy(u)
	p.FlushInterval = -1
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(tr.CloseIdleConnections)
	p.Transport = tr
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise net/http reads the rest of the request itself when the answer begins, while p still sends it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	})
}

// newProxy starts a proxy that speaks HTTP/1.1 alone.
func newProxy(t *testing.T, u *url.URL, roots *x509.CertPool, plain bool) *httptest.Server {
	t.Helper()
	front := httptest.NewUnstartedServer(proxyTo(t, u, roots))
	if plain {
		front.Start()
	} else {
		front.StartTLS()
	}
	t.Cleanup(front.Close)
	return front
}

// connectTo returns a client of a test server.
func connectTo(t *testing.T, server *httptest.Server, transport string) *agent.Client {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := agent.Options{
		URL: u, Profile: proto.Profile(), Transport: transport,
		Token: func(context.Context) (string, error) { return token, nil },
	}
	if cert := server.Certificate(); cert != nil {
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(cert)
	}
	c, err := agent.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
