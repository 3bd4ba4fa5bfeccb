package clientcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/mitm/clientcert"
)

// writePair makes a certificate and its key, in dir.
func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	write(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600)
	return cert, key
}

func write(t *testing.T, name string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, data, mode); err != nil {
		t.Fatal(err)
	}
}

func TestFor(t *testing.T) {
	dir := t.TempDir()
	allCert, allKey := writePair(t, dir, "all")
	corpCert, corpKey := writePair(t, dir, "corp")
	portCert, portKey := writePair(t, dir, "port")
	c, err := clientcert.Load(
		[]string{allCert, "*.Corp.example=" + corpCert, "other.example:8443=" + portCert},
		[]string{"*.corp.example=" + corpKey, allKey, "other.example:8443=" + portKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name  string
		names []string
	}{
		{"all", []string{"example.com:443"}},
		{"corp", []string{"10.0.0.1:443", "a.b.corp.example:443"}},
		{"all", []string{"other.example:443"}},
		{"port", []string{"other.example:8443"}},
	} {
		cert := c.For(want.names...)
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil || leaf.Subject.CommonName != want.name {
			t.Errorf("%q: %s, %v; want %s", want.names, leaf.Subject, err, want.name)
		}
	}
	only, err := clientcert.Load([]string{"*.corp.example=" + corpCert}, []string{"*.corp.example=" + corpKey})
	if err != nil || only.For("example.com:443", "corp.example:443") != nil {
		t.Errorf("a certificate for other hosts is shown: %v", err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "a")
	_, other := writePair(t, dir, "b")
	open, encrypted, nothing := filepath.Join(dir, "open.pem"), filepath.Join(dir, "encrypted.pem"), filepath.Join(dir, "nothing.pem")
	data, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, open, data, 0o644)
	write(t, encrypted, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}), 0o600)
	write(t, nothing, []byte("nothing"), 0o600)
	for want, c := range map[string]struct{ certs, keys []string }{
		"has no key: give it as --client-key KEY.pem":                         {[]string{cert}, nil},
		"has no key: give it as --client-key h=KEY.pem":                       {[]string{"h=" + cert}, []string{key}},
		"has no certificate: give it as --client-cert CERT.pem":               {nil, []string{key}},
		"there are two client certificates for h: give only one":              {[]string{"h=" + cert, "h=" + cert}, []string{"h=" + key}},
		"two client keys for all hosts":                                       {[]string{cert}, []string{key, key}},
		"is not the key of the certificate":                                   {[]string{cert}, []string{other}},
		"open.pem (mode 0644): run 'chmod 600' on the file":                   {[]string{cert}, []string{open}},
		"encrypted.pem is encrypted":                                          {[]string{cert}, []string{encrypted}},
		"contains no private key in PEM":                                      {[]string{cert}, []string{nothing}},
		"nothing.pem contains no certificate in PEM":                          {[]string{nothing}, []string{key}},
		"the client certificate cannot be read: open " + dir + "/missing.pem": {[]string{dir + "/missing.pem"}, []string{key}},
		"the client key cannot be read: stat " + dir + "/missing.pem":         {[]string{cert}, []string{dir + "/missing.pem"}},
		`the host pattern "[" of a client certificate is malformed`:           {[]string{"[=" + cert}, []string{"[=" + key}},
	} {
		if _, err := clientcert.Load(c.certs, c.keys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
