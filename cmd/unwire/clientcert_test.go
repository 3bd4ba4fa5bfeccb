package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"unwire/captures/need"
	"unwire/mitm/ca"
)

// TestClientCertificate records curl at a server that asks for a client certificate:
// with one for its host, and with none.
func TestClientCertificate(t *testing.T) {
	curl := need.Curl(t)
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: t.TempDir(), ran: map[string]bool{}}
	authority, err := ca.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("me.example")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, asks := range []tls.ClientAuthType{tls.RequireAnyClientCert, tls.RequestClientCert} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, c := range r.TLS.PeerCertificates {
				_, _ = io.WriteString(w, "hello "+c.DNSNames[0])
			}
		}))
		srv.EnableHTTP2 = true
		srv.TLS = &tls.Config{ClientAuth: asks}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		for name, b := range map[string]*pem.Block{
			"server-ca.pem": {Type: "CERTIFICATE", Bytes: srv.Certificate().Raw},
			"me.pem":        {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]},
			"me-key.pem":    {Type: "PRIVATE KEY", Bytes: key},
		} {
			s.write(name, pem.EncodeToMemory(b))
		}
		name := map[tls.ClientAuthType]string{tls.RequireAnyClientCert: "required", tls.RequestClientCert: "requested"}[asks]
		got := s.ok(0, "capture", "-o", name+"-with.uwc", "--upstream-ca", "server-ca.pem",
			"--client-cert", "127.0.0.1=me.pem", "--client-key", "127.0.0.1=me-key.pem", "--", curl, "-sS", srv.URL)
		if string(got) != "hello me.example" {
			t.Errorf("%s: %s", name, got)
		}
		if shown := s.ok(0, "show", name+"-with.uwc", "1"); !bytes.Contains(shown, []byte("client certificate sent")) {
			t.Errorf("%s", shown)
		}
		s.ok(0, "capture", "-o", name+".uwc", "--upstream-ca", "server-ca.pem", "--", curl, "-sS", srv.URL)
		if list := s.ok(0, "ls", name+".uwc"); !bytes.Contains(list, []byte("CERTIFICATE")) || !bytes.Contains(list, []byte("client certificate requested, none sent")) {
			t.Errorf("%s", list)
		}
		list := s.ok(0, "ls", "--json", name+".uwc")
		if !bytes.Contains(list, []byte(`"client_certificate":"requested"`)) || bytes.Contains(list, []byte("--client-cert PEM --client-key PEM")) != (asks == tls.RequireAnyClientCert) {
			t.Errorf("%s", list)
		}
	}
}
