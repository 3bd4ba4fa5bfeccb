package mitm

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures"
)

// certified starts a server whose certificate, of an authority that is trusted,
// is for a name and until a time.
func certified(t *testing.T, name string, until time.Time) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authority, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := x509.ParseCertificate(authority)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: template.NotBefore, NotAfter: until, DNSNames: []string{name},
	}, issuer, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(serveHello))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}}
	s.StartTLS()
	s.TLS.NextProtos = []string{protoH2, protoH1}
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	roots := x509.NewCertPool()
	roots.AddCert(issuer)
	return s, roots
}

// TestCertificatesThatDoNotVerify: the client is told why by default, and is
// served where that was asked for, which the exchange says.
func TestCertificatesThatDoNotVerify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host  string
		until time.Time
		why   string
	}{
		"expired":    {"localhost", time.Now().Add(-time.Hour), "expired"},
		"wrong host": {"other.example", time.Now().Add(time.Hour), "is valid for other.example, not localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			origin, roots := certified(t, c.host, c.until)
			url := strings.Replace(origin.URL, "127.0.0.1", "localhost", 1)
			eachVersion(t, func(t *testing.T, h2 bool) {
				b := newTestProxy(t, nil, func(o *Options) { o.UpstreamRoots = roots })
				res, body := get(t, b.client(h2), url+"/x")
				if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), c.why) || !strings.Contains(string(body), "--upstream-insecure") || strings.Contains(string(body), "--upstream-ca") {
					t.Errorf("%d %s", res.StatusCode, body)
				}
				if ex := b.one(); ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "is not trusted") || !strings.Contains(ex.Error, c.why) || ex.TLS.Unverified {
					t.Errorf("recorded %+v", ex)
				}
				b = newTestProxy(t, nil, func(o *Options) { o.UpstreamRoots, o.UpstreamInsecure = roots, true })
				if res, body := get(t, b.client(h2), url+"/x"); res.StatusCode != http.StatusOK || string(body) != "hello /x" {
					t.Errorf("%d %s", res.StatusCode, body)
				}
				if ex := b.one(); ex.Outcome != captures.Complete || !ex.TLS.Unverified || ex.TLS.Version != "1.3" || ex.TLS.CA != (captures.Authority{}) {
					t.Errorf("recorded %+v", ex)
				}
			})
		})
	}
}

func TestUntrustedServer(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.NotFoundHandler())
		b := newTestProxy(t, nil, nil) // which does not trust it
		res, body := get(t, b.client(h2), origin.URL)
		if res.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte("is not trusted")) || !bytes.Contains(body, []byte("--upstream-ca")) {
			t.Errorf("%d %s", res.StatusCode, body)
		}
		ex := b.one()
		if ex.Outcome != captures.Failed || !strings.Contains(ex.Error, "is not trusted") || ex.Status != 0 {
			t.Errorf("recorded %+v", ex)
		}
	})
}

func TestServerDown(t *testing.T) {
	b := newTestProxy(t, nil, nil)
	res, body := get(t, b.client(true), "https://"+nobody)
	if res.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte("connection refused")) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if ex := b.one(); ex.Outcome != captures.Failed {
		t.Errorf("recorded %+v", ex)
	}
}

// TestServerLosesHTTP2: what was learned of a server is learned anew when it
// turns out to be wrong.
func TestServerLosesHTTP2(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	o := b.proxy.origins.get(target{scheme: "https", addr: origin.Listener.Addr().String()})
	o.mu.Lock()
	o.negotiated["h2"] = "h2"
	o.mu.Unlock()
	origin.TLS.NextProtos = []string{"http/1.1"}
	if _, err := o.dialTLS(t.Context(), protoH2); err == nil {
		t.Fatal("no error")
	}
	if o.hasNegotiated(protoH2) {
		t.Error("still taken for HTTP/2")
	}
}

// TestAskingCostsNoConnection: the connection that learned the server's
// protocol carries the first request.
func TestAskingCostsNoConnection(t *testing.T) {
	for _, offer := range [][]string{{"h2"}, {"http/1.1"}, {"h2", "http/1.1"}} {
		var conns atomic.Int32
		origin := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		origin.EnableHTTP2 = true
		origin.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		}
		origin.StartTLS()
		defer origin.Close()
		origin.TLS.NextProtos = []string{"h2", "http/1.1"}
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		c := b.client(offer[0] == "h2")
		c.Transport.(*http.Transport).TLSClientConfig.NextProtos = offer
		get(t, c, origin.URL)
		if n := conns.Load(); n != 1 {
			t.Errorf("offer %q: %d connections", offer, n)
		}
	}
}
