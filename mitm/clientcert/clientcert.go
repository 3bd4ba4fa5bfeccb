// Package clientcert loads the client certificates that the proxy sends to servers that request one, each with
// the hosts for which it is meant.
//
//	certificates, err := clientcert.Load([]string{"*.corp.example=me.pem"}, []string{"*.corp.example=me-key.pem"})
//	...
//	cert := certificates.For("api.corp.example:443")
//
// Source: mitm/README.md#client-certificates
package clientcert

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Certificates selects TLS client certificates by the server's host. A nil *Certificates contains none.
type Certificates struct {
	// byHost are the client certificates in the order of loading; the one for all hosts is last.
	byHost []hostCertificate
}

// A hostCertificate is a client certificate and the hosts for which it is used.
type hostCertificate struct {
	// host is a glob for a host or host:port; "" matches every host.
	host string
	// cert is the client certificate with its private key.
	cert tls.Certificate
}

// A file is the path of a PEM file, with a glob pattern for the hosts for which it is used.
type file struct {
	// host is a glob for a host or host:port; "" matches every host.
	host string
	// name is the path of the PEM file.
	name string
}

// parseFile parses [HOST=]PEM. A "=" in the name of a folder is not treated as a separator.
func parseFile(s string) file {
	host, name, found := strings.Cut(s, "=")
	if !found || strings.ContainsRune(host, '/') || strings.ContainsRune(host, filepath.Separator) {
		return file{"", s}
	}
	return file{strings.ToLower(host), name}
}

// Load loads certificates and their keys, each given as [HOST=]FILE. HOST is a glob pattern for a host
// or host:port, and must be the same for a certificate and its key.
//
// Errors: if a key is readable by other users, encrypted, or does not match its certificate; if a
// certificate has no key, or a key no certificate.
func Load(certs, keys []string) (*Certificates, error) {
	keyFor := make(map[string]string)
	for _, s := range keys {
		f := parseFile(s)
		if _, twice := keyFor[f.host]; twice {
			return nil, fmt.Errorf("there are two client keys%s: give only one", forHost(f.host))
		}
		keyFor[f.host] = f.name
	}
	c := new(Certificates)
	for _, s := range certs {
		f := parseFile(s)
		if _, err := path.Match(f.host, ""); err != nil {
			return nil, fmt.Errorf("the host pattern %q of a client certificate is malformed", f.host)
		}

		// Two certificates for one pattern would make the choice depend on their order.
		if slices.ContainsFunc(c.byHost, func(h hostCertificate) bool { return h.host == f.host }) {
			return nil, fmt.Errorf("there are two client certificates%s: give only one", forHost(f.host))
		}
		key, ok := keyFor[f.host]
		if !ok {
			return nil, fmt.Errorf("the client certificate %s has no key: give it as --client-key %s", f.name, withHost(f.host, "KEY.pem"))
		}
		delete(keyFor, f.host)
		cert, err := loadPair(f.name, key)
		if err != nil {
			return nil, err
		}
		c.byHost = append(c.byHost, hostCertificate{f.host, cert})
	}

	// Keys that were not used have no certificate.
	for _, s := range keys {
		if f := parseFile(s); keyFor[f.host] != "" {
			return nil, fmt.Errorf("the client key %s has no certificate: give it as --client-cert %s", f.name, withHost(f.host, "CERT.pem"))
		}
	}

	// Certificates without a host come last, so a more specific one is found first.
	slices.SortStableFunc(c.byHost, func(a, b hostCertificate) int {
		switch {
		case a.host != "" && b.host == "":
			return -1
		case a.host == "" && b.host != "":
			return 1
		}
		return 0
	})
	return c, nil
}

// forHost describes a host pattern for error messages: " for HOST", or " for all hosts" if it is "".
func forHost(host string) string {
	if host == "" {
		return " for all hosts"
	}
	return " for " + host
}

// withHost returns [HOST=]NAME as the user would write it.
func withHost(host, name string) string {
	if host == "" {
		return name
	}
	return host + "=" + name
}

// For returns the first client certificate that matches one of a server's addresses (host:port), or nil.
func (c *Certificates) For(addrs ...string) *tls.Certificate {
	if c == nil {
		return nil
	}
	for i := range c.byHost {
		h := &c.byHost[i]
		if h.host == "" || slices.ContainsFunc(addrs, h.matches) {
			return &h.cert
		}
	}
	return nil
}

// matches reports whether the certificate is for a server with the address addr (host:port).
func (h *hostCertificate) matches(addr string) bool {
	addr = strings.ToLower(addr)
	// Load has checked the pattern.
	if ok, _ := path.Match(h.host, addr); ok {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ok, _ := path.Match(h.host, host)
	return ok
}

// loadPair loads a certificate with its key, and checks that other users cannot read the key.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	none := tls.Certificate{}
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return none, fmt.Errorf("the client certificate cannot be read: %w", err)
	}
	info, err := os.Stat(keyFile)
	if err != nil {
		return none, fmt.Errorf("the client key cannot be read: %w", err)
	}
	// Windows has access lists instead of modes.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return none, fmt.Errorf("other users can read the client key %s (mode %04o): run 'chmod 600' on the file", keyFile, mode)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return none, fmt.Errorf("the client key cannot be read: %w", err)
	}
	if err := checkPEM(cert, key, certFile, keyFile); err != nil {
		return none, err
	}

	// The most common mistake is a key of another certificate.
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		if strings.Contains(err.Error(), "does not match") {
			return none, fmt.Errorf("the client key %s is not the key of the certificate %s: give a certificate and a key that were created together", keyFile, certFile)
		}
		return none, fmt.Errorf("the client certificate %s cannot be used with the key %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

// checkPEM returns an error for common mistakes, such as an encrypted key, that crypto/tls reports in terms of
// its API.
func checkPEM(cert, key []byte, certFile, keyFile string) error {
	if !hasBlock(cert, func(b *pem.Block) bool { return b.Type == "CERTIFICATE" }) {
		return fmt.Errorf("the client certificate file %s contains no certificate in PEM; to convert a PKCS #12 file, run 'openssl pkcs12 -in FILE.p12 -nokeys -out cert.pem'", certFile)
	}
	encrypted := func(b *pem.Block) bool {
		return b.Type == "ENCRYPTED PRIVATE KEY" || b.Headers["DEK-Info"] != ""
	}
	switch {
	case hasBlock(key, encrypted):
		return fmt.Errorf("the client key %s is encrypted: decrypt it into a file of mode 0600 with 'openssl pkey -in FILE -out key.pem'", keyFile)
	case !hasBlock(key, func(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") }):
		return errors.New("the client key file " + keyFile + " contains no private key in PEM; to convert a PKCS #12 file, run 'openssl pkcs12 -in FILE.p12 -nocerts -nodes -out key.pem'")
	}
	return nil
}

// hasBlock reports whether data contains a PEM block for which the function is returns true.
func hasBlock(data []byte, is func(*pem.Block) bool) bool {
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			return false
		}
		if is(b) {
			return true
		}
	}
}
