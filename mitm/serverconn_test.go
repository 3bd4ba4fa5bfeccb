package mitm

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/mitm/clientcert"
)

// clientPair makes a certificate for clients: a pool that trusts it, and the files.
func clientPair(t *testing.T) (pool *x509.CertPool, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool, cert, key
}

func loadPair(t *testing.T, host, cert, key string) *clientcert.Certificates {
	t.Helper()
	c, err := clientcert.Load([]string{host + cert}, []string{host + key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// askingOrigin is a TLS server that asks for a client certificate, and answers with
// the name in it.
func askingOrigin(t *testing.T, auth tls.ClientAuthType, version uint16, trusted *x509.CertPool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			name = certs[0].Subject.CommonName
		}
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, name)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n"+name)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: auth, ClientCAs: trusted, MaxVersion: version}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// TestClientCertificate: a server that asks gets the certificate, one that goes on
// without is no failure, and one that does not says so, in the exchange and to the
// client.
func TestClientCertificate(t *testing.T) {
	trusted, cert, key := clientPair(t)
	_, otherCert, otherKey := clientPair(t)
	for name, c := range map[string]struct {
		auth  tls.ClientAuthType
		given *clientcert.Certificates
		body  string
		state captures.ClientCertificate
		fails string
	}{
		"required, given":     {tls.RequireAndVerifyClientCert, loadPair(t, "", cert, key), "client", captures.CertificateSent, ""},
		"required, for host":  {tls.RequireAndVerifyClientCert, loadPair(t, "127.*=", cert, key), "client", captures.CertificateSent, ""},
		"required, for other": {tls.RequireAndVerifyClientCert, loadPair(t, "*.example=", cert, key), "", captures.CertificateRequested, "asks for a client certificate and does not go on without one"},
		"required, not given": {tls.RequireAndVerifyClientCert, nil, "", captures.CertificateRequested, "--client-cert PEM --client-key PEM"},
		"required, wrong":     {tls.RequireAndVerifyClientCert, loadPair(t, "", otherCert, otherKey), "", captures.CertificateSent, "does not accept the client certificate"},
		"requested, given":    {tls.RequestClientCert, loadPair(t, "", cert, key), "client", captures.CertificateSent, ""},
		"requested":           {tls.RequestClientCert, nil, "nobody", captures.CertificateRequested, ""},
		"not asked":           {tls.NoClientCert, loadPair(t, "", cert, key), "nobody", "", ""},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+" "+tls.VersionName(version), func(t *testing.T) {
				t.Parallel()
				origin := askingOrigin(t, c.auth, version, trusted)
				eachVersion(t, func(t *testing.T, h2 bool) {
					b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.ClientCertificates = c.given })
					res, body := get(t, b.client(h2), origin.URL+"/x")
					ex := b.one()
					if ex.TLS.ClientCertificate != c.state {
						t.Errorf("recorded %q, want %q", ex.TLS.ClientCertificate, c.state)
					}
					if c.fails == "" {
						if string(body) != c.body || ex.Outcome != captures.Complete {
							t.Errorf("%d %s; %s %s", res.StatusCode, body, ex.Outcome, ex.Error)
						}
						return
					}
					if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), c.fails) || !strings.Contains(ex.Error, c.fails) || ex.Outcome != captures.Failed {
						t.Errorf("%d %s; %s %s", res.StatusCode, body, ex.Outcome, ex.Error)
					}
				})
			})
		}
	}
}

// TestClientCertificateUpgrade: a WebSocket's server gets the certificate too.
func TestClientCertificateUpgrade(t *testing.T) {
	trusted, cert, key := clientPair(t)
	origin := askingOrigin(t, tls.RequireAndVerifyClientCert, 0, trusted)
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.ClientCertificates = loadPair(t, "", cert, key) })
	conn := b.handshake(b.tunnel(origin.Listener.Addr().String()), "127.0.0.1")
	_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	got := make([]byte, len("client"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "client" {
		t.Fatalf("%q, %v", got, err)
	}
	_ = conn.Close()
	if ex := b.one(); ex.TLS.ClientCertificate != captures.CertificateSent {
		t.Errorf("recorded %+v", ex)
	}
}

// TestClientCertificateGRPC: grpc-go's server asks, behind the user's proxy.
func TestClientCertificateGRPC(t *testing.T) {
	trusted, cert, key := clientPair(t)
	own := newTLSOrigin(t, true, http.NotFoundHandler()) // for its certificate
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(serveGRPC), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: own.TLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	})))
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(server.Stop)
	addr := ln.Addr().String()
	call := func(b *testProxy) error {
		conn, err := grpc.NewClient("passthrough:///"+addr,
			grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(b.roots(), "127.0.0.1")),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return b.tunnel(addr), nil }))
		if err != nil {
			return err
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
		defer cancel()
		return conn.Invoke(ctx, "/t.v1.S/Unary", wrapperspb.String("a"), new(wrapperspb.StringValue))
	}
	u := newUserProxy(t, "http")
	b := newTestProxy(t, []*httptest.Server{own}, func(o *Options) {
		u.use(o)
		o.ClientCertificates = loadPair(t, "", cert, key)
	})
	if err := call(b); err != nil {
		t.Error(err)
	}
	if ex := b.checkThrough(u, 1)[0]; ex.TLS.ClientCertificate != captures.CertificateSent {
		t.Errorf("recorded %+v", ex)
	}
	without := newTestProxy(t, []*httptest.Server{own}, nil)
	if err := call(without); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("%v", err)
	}
	if ex := without.one(); !strings.Contains(ex.Error, "does not go on without one") || ex.TLS.ClientCertificate != captures.CertificateRequested {
		t.Errorf("recorded %+v", ex)
	}
}
