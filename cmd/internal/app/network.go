package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// UpstreamRoots is the system's roots and those of a file; nil for none.
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
		return nil, Fail(ExitInput, fmt.Errorf("%s holds no PEM certificate", file), "")
	}
	return pool, nil
}

// ListenLoopback listens, and refuses an address that others could reach; see
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

// LoopbackAddress returns the HOST:PORT that a --listen flag names. A port alone is one of
// 127.0.0.1.
//
// Errors: an address that others could reach.
func LoopbackAddress(addr string) (string, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = "127.0.0.1:" + addr
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", Usagef("--listen wants HOST:PORT or a port, such as 127.0.0.1:8080 or 8080, not %q", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", Fail(ExitUsage, fmt.Errorf("--listen %s is not a loopback address", addr),
			"unwire listens for this machine only: use 127.0.0.1 or ::1")
	}
	return addr, nil
}

// shutdownGrace is how long running calls get to end when a server is shut down.
const shutdownGrace = time.Second

// Shutdown ends a server by its own function. What runs after the grace is cut off.
func (a *App) Shutdown(stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.Signals.Within(shutdownGrace, InterruptedDrain))
	defer cancel()
	_ = stop(ctx) // nothing of what was cut off is kept
}
