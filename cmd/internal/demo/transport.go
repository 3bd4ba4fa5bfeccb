package demo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// newHTTPClient returns an HTTP client that uses the proxy in HTTPS_PROXY, and HTTP/2, or HTTP/1.1 if
// o.Fallback is set.
//
// It reads HTTPS_PROXY and SSL_CERT_FILE itself: net/http bypasses the proxy for loopback, where the
// stand-in runs, and crypto/x509 supports SSL_CERT_FILE on some systems only.
func newHTTPClient(o ClientOptions) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without any: the given ones will do
	}
	for _, file := range []string{os.Getenv("SSL_CERT_FILE"), o.CAFile} {
		if file == "" {
			continue
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("demo: %s contains no certificate", file)
		}
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		// It stays open as long as the process: a connection may begin at any time.
		if config.KeyLogWriter, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
	}
	tr := &http.Transport{
		TLSClientConfig:   config,
		ForceAttemptHTTP2: true,
	}
	if o.Fallback != "" {
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetHTTP1(true)
	} else if strings.HasPrefix(o.URL, "http:") {
		// In front of a server there may be one that speaks HTTP/2 in clear.
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: tr}, nil
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		proxy, err := url.Parse(value)
		if err != nil || proxy.Host == "" {
			// The value may hold a password: it is not repeated.
			return nil, errors.New("demo: " + name + " is not a URL like http://127.0.0.1:8080")
		}
		tr.Proxy = http.ProxyURL(proxy)
		break
	}
	return &http.Client{Transport: tr}, nil
}
