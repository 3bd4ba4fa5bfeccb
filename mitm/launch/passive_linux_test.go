package launch_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/mitm/launch"
)

// TestRunPassive has a static program ask a server in clear: its packets are
// recorded with what they carry, in the order of time, and each once.
func TestRunPassive(t *testing.T) {
	const size = 3 << 20
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(bytes.Repeat([]byte("x"), size))
			return
		}
		hello(w, r)
	}))
	defer origin.Close()
	keys := filepath.Join(t.TempDir(), "a folder", "keys.txt")
	var sent []byte
	total, before := 0, time.Time{}
	var out, errOut bytes.Buffer
	code, n, err := launch.RunPassive(t.Context(), launch.Options{
		Argv: []string{static(t), origin.URL + "/passive", origin.URL + "/large", "http://127.0.0.1:1/refused"},
		Env:  append(os.Environ(), "HTTPS_PROXY=http://127.0.0.1:1"), Stdout: &out, Stderr: &errOut,
	}, launch.Passive{
		Init: []string{os.Args[0], "namespace-init"}, KeyLog: keys,
		Packet: func(at time.Time, data []byte, length int) {
			total += length
			if bytes.Contains(data, []byte("GET /passive")) {
				sent = append(sent, data...)
			}
			if at.Before(before) || len(data) != length {
				t.Errorf("%v behind %v; %d of %d bytes", at, before, len(data), length)
			}
			before = at
		},
	})
	var unsupported *launch.UnsupportedError
	if errors.As(err, &unsupported) {
		if code != 126 || !strings.HasPrefix(unsupported.Error(), "passive capture: ") {
			t.Errorf("status %d, %v", code, err)
		}
		return
	}
	if err != nil || !strings.Contains(out.String(), "hello") || !strings.Contains(out.String()+errOut.String(), "refused") {
		t.Errorf("status %d, %v: %.300s %.300s", code, err, out.String(), errOut.String())
	}
	if bytes.Count(sent, []byte("GET /passive")) != 1 || n.Dropped != 0 || n.Cut != 0 || n.Recorded < 20 {
		t.Errorf("%+v; the request %d times", n, bytes.Count(sent, []byte("GET /passive")))
	}
	if total < size || total > size+size/4 {
		t.Errorf("%d bytes of packets for %d of content", total, size)
	}
}

// TestPassiveEnvironment: the key log's name is quoted as Node wants it, beside
// what was there.
func TestPassiveEnvironment(t *testing.T) {
	var out bytes.Buffer
	keys := filepath.Join(t.TempDir(), `a "b`, "keys.txt")
	_, _, err := launch.RunPassive(context.Background(), launch.Options{
		Argv: []string{"sh", "-c", `echo "$NODE_OPTIONS|$SSLKEYLOGFILE|$HTTPS_PROXY"`}, Stdout: &out,
		Env: []string{"PATH=" + os.Getenv("PATH"), "NODE_OPTIONS=--no-warnings", "HTTPS_PROXY=http://p:1"},
	}, launch.Passive{Init: []string{os.Args[0], "namespace-init"}, KeyLog: keys, Packet: func(time.Time, []byte, int) {}})
	var unsupported *launch.UnsupportedError
	if errors.As(err, &unsupported) {
		return
	}
	want := `--tls-keylog="` + strings.ReplaceAll(keys, `"`, `\"`) + `" --no-warnings|` + keys + "|http://p:1\n"
	if err != nil || out.String() != want {
		t.Errorf("%v: %q, want %q", err, out.String(), want)
	}
}
