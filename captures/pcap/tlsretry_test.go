package pcap

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
)

// retryingServer accepts a key exchange that clients do not guess, so that it answers
// their first hello with a HelloRetryRequest.
func retryingServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(serve))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// expectRetry checks that the server of each connection answered with a HelloRetryRequest.
func expectRetry(t *testing.T, p *tap) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		var fromServer []byte
		for _, e := range c.events {
			if e.dir == captures.Down {
				fromServer = append(fromServer, e.data...)
			}
		}
		// record header(5) message header(4) version(2) random(32)
		if len(fromServer) < 43 || [32]byte(fromServer[11:43]) != retryRandom {
			t.Errorf("the server did not ask for another hello: % x", fromServer[:min(43, len(fromServer))])
		}
	}
}

// TestHelloRetryRequest reads connections of Go, with packets in and out of order.
func TestHelloRetryRequest(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			t.Parallel()
			s := retryingServer(t)
			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			p := new(tap)
			transport := &http.Transport{DialContext: p.dial, DisableCompression: true, Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(!http2)
			transport.Protocols.SetHTTP2(http2)
			transport.TLSClientConfig = p.clientTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"})
			ask(t, &http.Client{Transport: transport}, s.URL, 3)
			transport.CloseIdleConnections()
			expectRetry(t, p)
			tr := transport2(http2)
			list := p.packets(t, linkEthernet)
			for name, packets := range map[string][]rawPacket{"in order": list, "shuffled": shuffled(slices.Clone(list)), "server first": serverFirst(list)} {
				got := importFile(t, pcapng(t, linkEthernet, packets, p.keys.Bytes()), nil)
				if len(reasons(got.conns)) > 0 {
					t.Errorf("%s: %q", name, reasons(got.conns))
				}
				expectCalls(t, tr, got, 3)
			}
		})
	}
}

func transport2(http2 bool) transport {
	if http2 {
		return transport{"retry-h2", "2", "1.3", "", 0}
	}
	return transport{"retry-h1", "1.1", "1.3", "", 0}
}

// serverFirst has the packets of servers before those of clients.
func serverFirst(list []rawPacket) []rawPacket {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b rawPacket) int { return int(b.dir) - int(a.dir) })
	return list
}

// TestHelloRetryRequestOfNode reads a connection of Node, whose key log has one line of
// each secret.
func TestHelloRetryRequestOfNode(t *testing.T) {
	t.Parallel()
	node := need.Node(t)
	s := retryingServer(t)
	for _, c := range []struct{ version, script string }{
		{"1.1", `
			const https = require('https')
			const req = https.request({host: '127.0.0.1', port, path: '/x', method: 'POST', rejectUnauthorized: false, ecdhCurve: 'X25519:P-384', agent: false}, res => res.pipe(process.stdout))
			req.end('one|two')`},
		{"2", `
			const session = require('http2').connect('https://127.0.0.1:' + port, {rejectUnauthorized: false, ecdhCurve: 'X25519:P-384'})
			const req = session.request({':path': '/x', ':method': 'POST'})
			req.on('end', () => session.close()).pipe(process.stdout)
			req.end('one|two')`},
	} {
		p := new(tap)
		_, port, err := net.SplitHostPort(p.relay(t, s.Listener.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "keys")
		out, err := exec.CommandContext(t.Context(), node, "--no-warnings", "--tls-keylog="+log, "-e", "const port = "+port+";"+c.script).CombinedOutput()
		if err != nil || string(out) != "<one><two>" {
			t.Fatalf("node: %v: %s", err, out)
		}
		expectRetryRead(t, p, log, c.version, "<one><two>")
	}
}

// expectRetryRead imports one exchange, with the keys of a file.
func expectRetryRead(t *testing.T, p *tap, log, version, answer string) {
	t.Helper()
	expectRetry(t, p)
	keys, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), nil), keys)
	if len(got.exchanges) != 1 {
		t.Fatalf("%d exchanges, connections %+v", len(got.exchanges), got.conns)
	}
	ex := got.exchanges[0]
	if ex.HTTP != version || ex.TLS.Version != "1.3" || ex.Outcome != captures.Complete || !strings.Contains(string(bodyOf(t, got.store, ex.ID, captures.Down)), answer) {
		t.Errorf("%+v; %q", ex, reasons(got.conns))
	}
}

// TestHelloRetryRequestOfOpenSSL reads a connection of curl with a server of OpenSSL.
func TestHelloRetryRequestOfOpenSSL(t *testing.T) {
	t.Parallel()
	openssl := need.Program(t, "openssl", "openssl", "version")
	curl := need.Curl(t, "OpenSSL")
	dir := t.TempDir()
	writeCertificate(t, filepath.Join(dir, "server.pem"))
	port := startOpenSSL(t, openssl, "-cert", filepath.Join(dir, "server.pem"), "-key", filepath.Join(dir, "server.pem"), "-www", "-groups", "P-384")
	p := new(tap)
	log := filepath.Join(t.TempDir(), "keys")
	cmd := exec.CommandContext(t.Context(), curl, "-sSk", "--noproxy", "*", "--curves", "X25519:P-384", "https://"+p.relay(t, "127.0.0.1:"+port)+"/x")
	cmd.Env = append(os.Environ(), "SSLKEYLOGFILE="+log)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "<HTML>") {
		t.Fatalf("curl: %v: %s", err, out)
	}
	expectRetryRead(t, p, log, "1.1", "<HTML>")
}

// writeCertificate writes the certificate and key of a test server.
func writeCertificate(t *testing.T, file string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	c := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	data = append(data, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// startOpenSSL starts openssl s_server on a free port, which it returns.
func startOpenSSL(t *testing.T, openssl string, flags ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), openssl, append([]string{"s_server", "-accept", "127.0.0.1:0"}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe() // at whose end it would end
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); stdin.Close(); _ = cmd.Wait() })
	timer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var said []byte
	for buf := make([]byte, 256); ; {
		n, err := out.Read(buf)
		said = append(said, buf[:n]...)
		if _, rest, ok := strings.Cut(string(said), "ACCEPT 127.0.0.1:"); ok && strings.Contains(rest, "\n") {
			port, _, _ := strings.Cut(rest, "\n")
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return strings.TrimSpace(port)
		}
		if err != nil {
			t.Fatalf("openssl s_server: %v: %s", err, said)
		}
	}
}
