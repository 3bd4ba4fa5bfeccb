package replay

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// certificate makes a self-signed server certificate for names, and the pool
// that trusts it.
func certificate(t *testing.T, from, to time.Time, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test server"}, NotBefore: from, NotAfter: to,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// An endpoint is a server that a request is sent to, which counts the requests
// that its handler gets.
type endpoint struct {
	url     string
	roots   *x509.CertPool
	handled *atomic.Int64
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
}

// https starts a real TLS server; its handler, if it runs, answers with a message.
func https(t *testing.T, config *tls.Config, http2 bool) endpoint {
	t.Helper()
	now := time.Now()
	cert, roots := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1")
	if config.Certificates == nil {
		config.Certificates = []tls.Certificate{cert}
	}
	handled := new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Add(1) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2, s.TLS = http2, config
	s.StartTLS()
	t.Cleanup(s.Close)
	return endpoint{url: s.URL, roots: roots, handled: handled}
}

// accepted starts a TCP server that hands each connection to serve.
func accepted(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the client is to see an abrupt end
				serve(conn)
			}()
		}
	}()
	return ln.Addr().String()
}

func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // nothing was written
	return ln.Addr().String()
}

// captured is a call over a version of HTTP: grpc streams on HTTP/2, which a
// replay cannot send over HTTP/1.1, and a unary Connect call.
func captured(t *testing.T, url, version, media string) (*store.Store, int64) {
	t.Helper()
	message := []byte("\x0a\x05hello")
	if media == "application/grpc" {
		message = envelope.Append(nil, 0, message)
	}
	ex := captures.Exchange{
		Method: "POST", URL: url + "/test.v1.Test/Say", HTTP: version,
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: media}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: media}},
	}
	if media == "application/grpc" {
		ex.ResponseTrailers = captures.Headers{{Name: "grpc-status", Value: "0"}}
	}
	return written(t, ex, up(message), down(message))
}

// What never became a connection is reported as not sent, with the reason.
func TestNotSent(t *testing.T) {
	now := time.Now()
	dials := func(err error) func(*testing.T) endpoint {
		return func(*testing.T) endpoint {
			return endpoint{url: "https://127.0.0.1:9", dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
		}
	}
	own := func(from, to time.Duration, names ...string) func(*testing.T) endpoint {
		return func(t *testing.T) endpoint {
			cert, roots := certificate(t, now.Add(from), now.Add(to), names...)
			s := https(t, &tls.Config{Certificates: []tls.Certificate{cert}}, true)
			s.roots = roots
			return s
		}
	}
	for _, c := range []struct {
		name   string
		serve  func(*testing.T) endpoint
		reason outbound.Reason
		says   string
		only   string // the one kind of call; "": all
	}{
		{"untrusted", func(t *testing.T) endpoint {
			s := https(t, &tls.Config{}, true)
			s.roots = nil
			return s
		}, outbound.CertificateUntrusted, `the server's TLS certificate is not trusted: its issuer is "CN=test server"`, ""},
		{"expired", own(-2*time.Hour, -time.Hour, "127.0.0.1"), outbound.CertificateExpired, "the server's TLS certificate expired on " + now.Add(-time.Hour).UTC().Format("2006-01-02"), ""},
		{"not yet valid", own(time.Hour, 2*time.Hour, "127.0.0.1"), outbound.CertificateExpired, "the server's TLS certificate is not valid before " + now.Add(time.Hour).UTC().Format("2006-01-02"), ""},
		{"wrong host", own(-time.Hour, time.Hour, "api.example"), outbound.CertificateWrongHost, "the server's TLS certificate is for api.example, not for 127.0.0.1", ""},
		{"closed port", func(t *testing.T) endpoint { return endpoint{url: "https://" + closedPort(t)} }, outbound.NoConnection, "connection refused", ""},
		{"closed port, cleartext", func(t *testing.T) endpoint { return endpoint{url: "http://" + closedPort(t)} }, outbound.NoConnection, "connection refused", ""},
		{"no such host", dials(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}}), outbound.HostNotFound, "the host name api.example was not found", ""},
		{"no route", dials(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("network is unreachable")}), outbound.NoConnection, "network is unreachable", ""},
		{"closed in the handshake", func(t *testing.T) endpoint {
			return endpoint{url: "https://" + accepted(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) })}
		}, outbound.HandshakeFailed, "the TLS handshake failed", ""},
		{"silent in the handshake", func(t *testing.T) endpoint {
			return endpoint{url: "https://" + accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), timeout: 200 * time.Millisecond}
		}, outbound.ConnectTimeout, "no TLS connection within 200ms", ""},
		{"cleartext server", func(t *testing.T) endpoint {
			s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
			return endpoint{url: strings.Replace(s.URL, "http:", "https:", 1)}
		}, outbound.NotTLS, "the server does not speak TLS on this port", ""},
		{"cleartext server that speaks first", func(t *testing.T) endpoint {
			return endpoint{url: "https://" + accepted(t, func(c net.Conn) {
				_, _ = c.Write([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00"))
				_, _ = io.Copy(io.Discard, c)
			})}
		}, outbound.NotTLS, "the server does not speak TLS on this port", ""},
		{"another protocol by ALPN", func(t *testing.T) endpoint {
			return https(t, &tls.Config{NextProtos: []string{"http/1.1"}}, false)
		}, outbound.NoHTTP2, "the server does not support HTTP/2", "application/grpc"},
		{"no ALPN", func(t *testing.T) endpoint {
			s := https(t, &tls.Config{}, false)
			cert, roots := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1")
			s.url, s.roots = "https://"+accepted(t, func(c net.Conn) {
				_, _ = io.Copy(io.Discard, tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}}))
			}), roots
			return s
		}, outbound.NoHTTP2, "the server does not support HTTP/2", "application/grpc"},
		{"old version of TLS", func(t *testing.T) endpoint {
			return https(t, &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, false)
		}, outbound.HandshakeFailed, "the TLS handshake failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, call := range [][2]string{{"1.1", "application/proto"}, {"2", "application/proto"}, {"2", "application/grpc"}} {
				if c.only != "" && c.only != call[1] {
					continue
				}
				s := c.serve(t)
				store, id := captured(t, s.url, call[0], call[1])
				o := settings{Roots: s.roots, Timeout: time.Minute, Dial: s.dial}
				if s.timeout > 0 {
					o.Timeout = s.timeout
				}
				r := send(t, store, id, o)
				if r.Comparison != NotSent || r.Origin != FromLocal || r.Code != "" || r.Status != 0 || r.Sent != 0 || r.Reason != c.reason || r.ConnectCode() != 0 {
					t.Errorf("%v: %+v", call, r)
				}
				if !strings.HasPrefix(r.Message, c.says) && !strings.HasSuffix(r.Message, c.says) {
					t.Errorf("%v: message %q, want %q", call, r.Message, c.says)
				}
				if s.handled != nil && s.handled.Load() != 0 {
					t.Errorf("%v: the handler ran", call)
				}
			}
		})
	}
}

// Once a request has left, a failure is no statement that it was not executed.
func TestSentWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(*testing.T) endpoint
		http  string
		code  string
		says  string
	}{
		{"closed after the request", func(t *testing.T) endpoint {
			return endpoint{url: "http://" + accepted(t, func(c net.Conn) { readRequest(c) })}
		}, "1.1", "unavailable", "EOF"},
		{"closed after the request, TLS and HTTP/2", func(t *testing.T) endpoint {
			s := https(t, &tls.Config{}, true)
			inner := strings.TrimPrefix(s.url, "https://")
			s.url = "https://" + accepted(t, func(c net.Conn) { relayRequest(t, c, inner, s.handled) })
			return s
		}, "2", "unavailable", "EOF"},
		{"no HTTP", func(t *testing.T) endpoint {
			return endpoint{url: "http://" + accepted(t, func(c net.Conn) { readRequest(c); _, _ = c.Write([]byte("nonsense\r\n\r\n")) })}
		}, "1.1", "unavailable", "malformed HTTP response"},
		{"silence", func(t *testing.T) endpoint {
			return endpoint{url: "http://" + accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), timeout: 300 * time.Millisecond}
		}, "1.1", "deadline_exceeded", "the answer did not end within 300ms"},
		{"silence, HTTP/2", func(t *testing.T) endpoint {
			return endpoint{url: "http://" + accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), timeout: 300 * time.Millisecond}
		}, "2", "deadline_exceeded", "the answer did not end within 300ms"},
		{"TLS server at an http URL", func(t *testing.T) endpoint {
			return endpoint{url: "http://" + accepted(t, func(c net.Conn) {
				readRequest(c)
				_, _ = c.Write([]byte("\x15\x03\x01\x00\x02\x02\x46"))
			})}
		}, "1.1", "unavailable", "malformed HTTP response"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.serve(t)
			store, id := captured(t, s.url, c.http, "application/proto")
			o := settings{Roots: s.roots, Timeout: time.Minute}
			if s.timeout > 0 {
				o.Timeout = s.timeout
			}
			r := send(t, store, id, o)
			if r.Comparison != Rejected || r.Origin != FromLocal || r.Code != c.code || r.Status != 0 || r.Reason != outbound.NoAnswer {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(r.Message, c.says) || !strings.HasSuffix(r.Message, "; the server may have executed the request") {
				t.Errorf("message %q, want %q", r.Message, c.says)
			}
		})
	}
}

// readRequest reads the head of an HTTP/1.1 request.
func readRequest(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// relayRequest relays bytes to a server until that has got a request, and then
// closes the connection without any answer to it.
func relayRequest(t *testing.T, c net.Conn, server string, handled *atomic.Int64) {
	up, err := net.Dial("tcp", server)
	if err != nil {
		t.Error(err)
		return
	}
	defer up.Close() //nolint:errcheck // it was closed on purpose
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		_, _ = io.Copy(up, c)
	}()
	buf := make([]byte, 4096)
	for handled.Load() == 0 {
		_ = up.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		n, err := up.Read(buf)
		if handled.Load() > 0 {
			break
		}
		if _, werr := c.Write(buf[:n]); werr != nil || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
	_ = c.Close()
	<-seen
}

// A refusal on the address that is dialled is a refusal, not the server's answer.
func TestRefusedWhenDialled(t *testing.T) {
	store, id := captured(t, "https://127.0.0.1:9", "2", "application/proto")
	r := send(t, store, id, settings{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, fmt.Errorf("%w: 192.0.2.1:443 is not a loopback address", outbound.ErrRefused)
	}})
	if r.Comparison != Refused || r.Origin != FromLocal || r.Code != "" || !strings.Contains(r.Message, "is not a loopback address") {
		t.Errorf("%+v", r)
	}
}

// What is volatile cannot be learnt from requests that got no answer.
func TestLearnFromNoAnswer(t *testing.T) {
	store, id := captured(t, "http://"+closedPort(t), "1.1", "application/proto")
	if l, err := learn(t.Context(), store, id, settings{}, nil); !errors.Is(err, outbound.ErrNotSent) || l != nil {
		t.Errorf("%+v, %v", l, err)
	}
	s := "http://" + accepted(t, func(c net.Conn) { readRequest(c) })
	store, id = captured(t, s, "1.1", "application/proto")
	if l, err := learn(t.Context(), store, id, settings{}, nil); err == nil || !strings.Contains(err.Error(), "the unedited request got no answer") || l != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

// The journal and the capture of the answers name a request that was not sent.
func TestNotSentIsRecorded(t *testing.T) {
	store, id := captured(t, "http://"+closedPort(t), "1.1", "application/proto")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	l := &lab{TB: t, store: store, out: filepath.Join(t.TempDir(), "out.uwc")}
	r := l.replay(id, settings{Pace: &outbound.Pace{Journal: openJournal(t, path)}})
	asked, answered := entries(t, path)
	if len(asked) != 1 || len(answered) != 1 || answered[0].Comparison != string(NotSent) || answered[0].Origin != string(FromLocal) || answered[0].Code != "" || answered[0].Message != r.Message {
		t.Errorf("%+v", answered)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Failed || ex.Error != "not sent: "+r.Message {
		t.Errorf("%s %q", ex.Outcome, ex.Error)
	}
}

// Without verification the request goes to a server that nobody vouches for, and
// plan and record say so.
func TestInsecure(t *testing.T) {
	s := https(t, &tls.Config{}, true)
	store, id := captured(t, s.url, "2", "application/proto")
	l := &lab{TB: t, store: store, out: filepath.Join(t.TempDir(), "out.uwc")}
	if p := l.plan(id, settings{Insecure: true}); len(p.shown.Warnings) != 1 || !strings.Contains(p.shown.Warnings[0], "is not verified") {
		t.Errorf("%q", p.shown.Warnings)
	}
	r := l.replay(id, settings{Insecure: true})
	if r.Comparison == NotSent || r.Status != http.StatusOK || s.handled.Load() != 1 {
		t.Errorf("%+v", r)
	}
	if ex := l.answered(r.Exchange); !ex.TLS.Unverified {
		t.Errorf("%+v", ex.TLS)
	}
}

// The exchange of an API key says as well that it was not sent.
func TestRefreshNotSent(t *testing.T) {
	c, err := credential.Resolver{Getenv: func(name string) string { return map[string]string{credential.EnvAPIKey: "a-made-up-key"}[name] }}.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{
		"http://" + closedPort(t):         "not sent: no connection to 127.0.0.1:",
		https(t, &tls.Config{}, true).url: "not sent: the server's TLS certificate is not trusted",
	} {
		if err := c.Refresh(t.Context(), proto.Profile(), mustURL(base), outbound.Policy{}, 0); !errors.Is(err, outbound.ErrNotSent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
