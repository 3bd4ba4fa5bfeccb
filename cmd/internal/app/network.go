package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/replay/outbound"
)

// UpstreamRoots returns the system's CA certificates together with those in a PEM file; nil if file is
// "".
func UpstreamRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, Fail(ExitInput, fmt.Errorf("%s contains no PEM certificate", file), "the file needs a line BEGIN CERTIFICATE; 'openssl x509 -inform der -in FILE' converts a DER file")
	}
	return pool, nil
}

// ListenLoopback listens on a TCP address, and refuses any address that other machines could reach; see
// LoopbackAddress.
func ListenLoopback(addr string) (net.Listener, error) {
	addr, err := LoopbackAddress(addr)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, Fail(ExitInput, err, "choose another port, or 127.0.0.1:0 for any free one")
	}
	return ln, nil
}

// LoopbackAddress returns the HOST:PORT for the value of --listen. A port without a host is on 127.0.0.1.
func LoopbackAddress(addr string) (string, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = "127.0.0.1:" + addr
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", Usagef("--listen must be HOST:PORT or a port, such as 127.0.0.1:8080 or 8080, not %q", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", Fail(ExitUsage, fmt.Errorf("--listen %s is not a loopback address", addr),
			"unwire listens only for clients on this machine: use 127.0.0.1 or ::1")
	}
	return addr, nil
}

// shutdownGrace is how long running requests may continue when a server is shut down.
const shutdownGrace = time.Second

// Shutdown stops a server by calling stop, which waits for running requests. Requests that still run
// after the grace period are cut off.
func (a *App) Shutdown(stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.Signals.Within(shutdownGrace, InterruptedDrain))
	defer cancel()
	_ = stop(ctx) // requests that were cut off are lost
}

// ServeUntil runs serve until ctx ends, or until serve fails. ready is called when serve has been started.
//
// Errors: those of ready and serve; nil if ctx has ended.
func ServeUntil(ctx context.Context, serve, ready func() error) error {
	served := make(chan error, 1)
	go func() { served <- serve() }()
	if err := ready(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// TrustRecorded adds the CA certificate with which an exchange was recorded to the trusted CAs of p, and
// prints that. It does nothing without TLS, or if p already has CAs from a flag. If id is 0, it uses the first exchange
// that stores a CA.
//
// The CA is trusted only if the requests go to the captured server or to a loopback address.
func (a *App) TrustRecorded(ctx context.Context, c *store.Store, id int64, to *url.URL, p *outbound.Policy) error {
	if p.Roots != nil || p.Insecure || to != nil && to.Scheme == "http" {
		return nil
	}
	ex, err := exchangeWithCA(ctx, c, id)
	if err != nil || ex == nil || ex.TLS.CA.SHA256 == "" || !servesAs(ex, to) {
		return err
	}
	der, err := c.Authority(ctx, ex.TLS.CA.SHA256)
	if err != nil || len(der) == 0 {
		return err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		//nolint:nilerr // the capture can be read without it
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AddCert(root)
	p.Roots = pool
	a.Say("unwire: for these requests, unwire trusts the CA of the recorded server: %s (SHA-256 %.16s…)", term.Clean(root.Subject.String()), ex.TLS.CA.SHA256)
	return nil
}

// exchangeWithCA returns the exchange id or, if id is 0, the first exchange that stores a CA
// certificate; nil if there is none.
func exchangeWithCA(ctx context.Context, c *store.Store, id int64) (*captures.Exchange, error) {
	if id != 0 {
		ex, err := c.Exchange(ctx, id)
		if errors.Is(err, captures.ErrNoExchange) {
			return nil, nil // whoever needs the exchange reports it
		}
		return ex, err
	}
	for ex, err := range c.Exchanges(ctx) {
		if err != nil || ex.TLS.CA.SHA256 != "" {
			return ex, err
		}
	}
	return nil, nil
}

// servesAs reports whether a request to a URL goes to the host of a recorded exchange or to this machine;
// true if to is nil.
func servesAs(ex *captures.Exchange, to *url.URL) bool {
	if to == nil || outbound.IsLoopback(strings.ToLower(to.Hostname())) {
		return true
	}
	u, err := url.Parse(ex.URL)
	return err == nil && strings.EqualFold(u.Hostname(), to.Hostname())
}

// OpenTrusted opens a capture like OpenForwarded, and adds to p the CA with which one of its exchanges
// was recorded; see TrustRecorded.
func (a *App) OpenTrusted(ctx context.Context, file string, exchange int64, to *url.URL, p *outbound.Policy, forwarded [2]bool) (*query.Capture, error) {
	c, err := a.OpenForwarded(file, forwarded)
	if err != nil {
		return nil, err
	}
	if err := a.TrustRecorded(ctx, c.Store, exchange, to, p); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
