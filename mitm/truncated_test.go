package mitm

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/need"
)

// TestPythonEnds: Python's ssl ends TLS without close_notify, as a client and as a server,
// and OpenSSL answers such an end with an alert. That is recorded as an end.
func TestPythonEnds(t *testing.T) {
	t.Parallel()
	python := need.Python(t, "ssl")
	for name, c := range map[string]struct {
		answer string // of the server to each line; "": its line, "-": nothing
		action string // of the client
		words  string
		up     string // that is recorded
	}{
		"echo":        {"", "read", `\x00one\n`, "\x00one\n"},
		"TLS 1.2":     {"", "old read", `\x00one\n`, "\x00one\n"},
		"writes only": {"-", "", `\x00one\n|\x00two\n`, "\x00one\n\x00two\n"},
		"HTTP/1":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "read", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", ""},
		"HTTP/1.0":    {"HTTP/1.0 200 OK\r\n\r\nok", "read", "GET / HTTP/1.0\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newPythonOrigin(t, python, c.answer)
			b := o.proxy(t, nil)
			out, err := exec.CommandContext(t.Context(), python, "testdata/tls_client.py", b.addr, o.addr, b.ca.CertFile, c.action, c.words).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ex := b.recorded(1)[0]
			if got := string(b.body(ex.ID, captures.Up)); ex.Outcome != captures.Complete || ex.Error != "" || got != c.up {
				t.Errorf("recorded %v %q with %q, want a complete one with %q", ex.Outcome, ex.Error, got, c.up)
			}
		})
	}
}

// newPythonOrigin starts a server of Python's.
func newPythonOrigin(t *testing.T, python, answer string) *rawOrigin {
	t.Helper()
	pair := newTLSOrigin(t, false, http.NotFoundHandler())
	file := filepath.Join(t.TempDir(), "pair.pem")
	key, err := x509.MarshalPKCS8PrivateKey(pair.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate().Raw})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/tls_server.py", file, answer)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with that
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &rawOrigin{addr: net.JoinHostPort("127.0.0.1", strings.TrimSpace(port)), cert: pair.Certificate()}
}
