package mitm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/mitm/refusal"
)

// TestPinnedCertificates: clients that look for one certain certificate, during
// the handshake and after it.
func TestPinnedCertificates(t *testing.T) {
	t.Parallel()
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	for name, pin := range map[string]func(b *testProxy, raw net.Conn){
		"during": func(b *testProxy, raw net.Conn) {
			conn := tls.Client(raw, &tls.Config{RootCAs: b.roots(), ServerName: "127.0.0.1", VerifyConnection: func(tls.ConnectionState) error { return errors.New("another one") }})
			if conn.Handshake() == nil {
				t.Error("the client took it")
			}
		},
		"after": func(b *testProxy, raw net.Conn) { b.handshake(raw, "127.0.0.1", protoH1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			raw := b.tunnel(origin.Listener.Addr().String())
			pin(b, raw)
			raw.Close()
			if ex := b.one(); ex.Outcome != captures.Failed || !strings.HasPrefix(ex.Error, refusal.Prefix) || ex.URL != origin.URL {
				t.Errorf("recorded %+v", ex)
			}
		})
	}
}

func TestRefusedCertificateIsRecorded(t *testing.T) {
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	client := newClient(t, true, x509.NewCertPool(), http.ProxyURL(b.url()))
	if _, err := client.Get(origin.URL); err == nil {
		t.Fatal("the client trusts anybody")
	}
	ex := b.one()
	if ex.Outcome != captures.Failed || ex.Method != "CONNECT" || ex.URL != origin.URL || !strings.Contains(ex.Error, "client refused the certificate") {
		t.Errorf("recorded %+v", ex)
	}
}

// TestUsedConnectionIsNoRefusal checks that a client that sends a request does not count as one that refuses the
// certificate, whatever protocol it negotiates.
func TestUsedConnectionIsNoRefusal(t *testing.T) {
	t.Parallel()
	origin := httptest.NewUnstartedServer(http.HandlerFunc(serveHello))
	origin.TLS = &tls.Config{NextProtos: []string{protoOldH1, protoH1}}
	origin.StartTLS()
	t.Cleanup(origin.Close)
	for _, protocol := range []string{"", protoOldH1, protoH1} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			raw := b.tunnel(origin.Listener.Addr().String())
			offer := []string{protocol}
			if protocol == "" {
				offer = nil
			}
			conn := b.handshake(raw, "127.0.0.1", offer...)
			if _, err := io.WriteString(conn, "GET /there HTTP/1.0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "hello /there") {
				t.Errorf("%q, %v", answer, err)
			}
			if _, err := io.Copy(io.Discard, raw); err != nil {
				t.Error(err)
			}

			// The proxy has closed the connection; the end of the recording decides whether that was a refusal.
			ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
			defer cancel()
			if err := b.proxy.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			if ex := b.one(); ex.Outcome != captures.Complete || ex.Status != http.StatusOK {
				t.Errorf("recorded %+v", ex)
			}
		})
	}
}

// TestHangUpAfterRequests: a client that has used a connection to a server, and closes another one during the handshake,
// is not said to refuse the certificate.
func TestHangUpAfterRequests(t *testing.T) {
	t.Parallel()
	origin := newTLSOrigin(t, true, http.NotFoundHandler())
	reported := make(chan refusal.Refusal, 1)
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
		o.CertificateRefused = func(r refusal.Refusal) { reported <- r }
	})
	res, err := b.client(true).Get(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	raw := b.tunnel(origin.Listener.Addr().String())
	_ = tls.Client(unread{raw}, &tls.Config{ServerName: "127.0.0.1", RootCAs: b.roots()}).Handshake()
	raw.Close()
	var texts []string
	for _, ex := range b.recorded(2) {
		texts = append(texts, ex.Error)
	}
	if !slices.Contains(texts, refusal.HungUp) {
		t.Errorf("recorded errors: %q", texts)
	}
	select {
	case r := <-reported:
		t.Errorf("reported %+v", r)
	default:
	}
}

// An unread is a connection that ends when it is read.
type unread struct{ net.Conn }

func (unread) Read([]byte) (int, error) { return 0, io.EOF }
