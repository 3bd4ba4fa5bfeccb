package demo

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/replay/standin"
)

// tunnel is a proxy that knows CONNECT and nothing else.
func tunnel(t *testing.T) (url string, used *atomic.Int32) {
	t.Helper()
	used = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer up.Close()
		used.Add(1)
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer down.Close()
		_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, down) }()
		_, _ = io.Copy(down, up)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, used
}

func TestGoClientHonoursItsEnvironment(t *testing.T) {
	s := startStandin(t, standin.Options{})
	proxy, used := tunnel(t)
	t.Setenv("HTTPS_PROXY", proxy)
	t.Setenv("SSL_CERT_FILE", s.CAFile)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := RunClient(ctx, ClientOptions{URL: s.URL() + "/", Token: token, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	checkLines(t, out.String())
	if used.Load() == 0 {
		t.Error("the proxy saw no connection")
	}
}

func TestBadEnvironment(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ variable, value, want string }{
		"proxy":          {"HTTPS_PROXY", "secret@nowhere", "HTTPS_PROXY is not a URL"},
		"no such file":   {"SSL_CERT_FILE", empty + ".not", "no such file"},
		"no certificate": {"SSL_CERT_FILE", empty, "contains no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			err := RunClient(t.Context(), ClientOptions{URL: "https://127.0.0.1:1", Token: token})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A server that does not play along must not look like success.
func TestGoClientReportsBrokenTurns(t *testing.T) {
	for script, want := range map[string]string{
		`{"text":"a"}`:                        "the stream ended before the answer did",
		`{"text":"a"},{"reset":true}`:         "after 1 frames",
		`{"turn_ended":{}},{"drop_end":true}`: "after 1 frames",
		`{"tool":{"name":"ls"}}`:              "the client threw: the demo's client only reads files",
		`{"tool":{"name":"read","args":{"path":"../../etc/passwd"},"require":"success"}}`:                              `is "file_not_found"`,
		`{"kv_set":{"data":"x","as":"k"}},{"kv_get":{"blob":"k"}},{"error":{"code":"internal","message":"got there"}}`: "got there",
	} {
		s := startStandin(t, standin.Options{Script: []byte(`{"v":1,"turns":[{"steps":[` + script + `]}]}`)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := RunClient(ctx, ClientOptions{URL: s.URL(), Token: token, CAFile: s.CAFile, Heartbeat: time.Millisecond})
		cancel()
		if err == nil || !strings.HasPrefix(err.Error(), "demo: the conversation failed: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", script, err, want)
		}
	}
	s := startStandin(t, standin.Options{})
	err := RunClient(t.Context(), ClientOptions{URL: s.URL(), Token: "another", CAFile: s.CAFile})
	if err == nil || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("with another token: %v", err)
	}
}
