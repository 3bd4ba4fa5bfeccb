package mitm

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// nodeRows are the checks of testdata/node/matrix.mjs, each with what its
// result must hold.
var nodeRows = []struct{ name, want string }{
	{"http2 GET", "GET /echo"},
	{"http2 POST", "hello"},
	{"http2 HEAD", "\"5\""},
	{"http2 empty", "204"},
	{"http2 1xx", "</a>"},
	{"http2 trailers", "x-announced"},
	{"http2 headers first", "headers, then sent"},
	{"http2 lock-step", "8 rounds"},
	{"http2 cut off", "half"},
	{"http2 refused", "403"},
	{"http2 cancel", "it ended"},
	{"http2 ping", "pong"},
	{"http2 50 streams", "50"},
	{"http2 large headers", "2048 20000"},
	{"https GET", "GET /echo"},
	{"https chunked", "hello"},
	{"https HEAD", "\"5\""},
	{"https 1xx", "103"},
	{"https expect-continue", "continue"},
	{"https trailers", "x-announced"},
	{"https raw headers", "Set-Cookie"},
	{"https keep-alive", "true"},
	{"https cut off", "ECONNRESET"},
	{"https upgrade", "welcome"},
	{"fetch GET", "GET /echo"},
	{"fetch gzip", "gzip gzip"},
	{"fetch POST", "hello"},
	{"fetch 304", "304"},
	{"fetch abort", "AbortError"},
}

// nodeChecks run one program for each lane, whose result has all the rows.
func nodeChecks(t *testing.T) []check {
	node, err := need.CheckNode()
	if err != nil {
		t.Run("node", func(t *testing.T) { t.Skipf("its rows are missing: %v", err) })
		return nil
	}
	var mu sync.Mutex
	results := make(map[string]map[string]string)
	result := func(t *testing.T, l *lane) map[string]string {
		mu.Lock()
		defer mu.Unlock()
		if results[l.name] == nil {
			results[l.name] = l.node(t, node)
		}
		return results[l.name]
	}
	var out []check
	for _, r := range nodeRows {
		out = append(out, check{client: "node", proxied: true, name: r.name, want: r.want, run: func(t *testing.T, l *lane) string { return result(t, l)[r.name] }})
	}
	return out
}

func (l *lane) node(t *testing.T, node string) map[string]string {
	ctx, cancel := context.WithTimeout(t.Context(), 3*matrixTimeout)
	defer cancel()
	argv := []string{node, "testdata/node/matrix.mjs", l.base, l.name}
	var out, errOut bytes.Buffer
	if l.proxy != nil {
		code, err := launch.Run(ctx, launch.Options{Argv: argv, ProxyURL: l.bench.url().String(), CAFile: l.caFile, ControlToken: controlToken, Stdout: &out, Stderr: &errOut})
		if code != 0 || err != nil {
			t.Errorf("%s: status %d, %v: %s", l.name, code, err, errOut.String())
		}
	} else {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+l.caFile)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errOut, time.Second
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v: %s", l.name, err, errOut.String())
		}
	}
	rows := make(map[string]string)
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Errorf("%s: %v: %s%s", l.name, err, strings.TrimSpace(out.String()), errOut.String())
	}
	return rows
}
