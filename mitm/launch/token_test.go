//go:build unix

package launch_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// TestTokenIsInTheEnvironmentOnly looks at all that a command can see of itself
// while it runs: its arguments, its environment and the files made for it.
func TestTokenIsInTheEnvironmentOnly(t *testing.T) {
	path := need.Node(t)
	const script = `
const fs = require('node:fs'), path = require('node:path');
const folder = path.dirname(process.env.SSL_CERT_FILE);
console.log(JSON.stringify({
  environment: Object.keys(process.env).filter((k) => process.env[k].includes(process.env.UNWIRE_HOOK_TOKEN)),
  token: process.env.UNWIRE_HOOK_TOKEN,
  elsewhere: [process.argv, process.execArgv, folder, ...fs.readdirSync(folder).map((f) => [f, fs.readFileSync(path.join(folder, f), 'utf8')])],
}));`
	code, out, stderr, err := newRecorder(t).run("", []string{path, "-e", script}, nil)
	if code != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", code, err, stderr)
	}
	var seen struct {
		Environment []string
		Token       string
		Elsewhere   json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Token != controlToken || !slices.Equal(seen.Environment, []string{"UNWIRE_HOOK_TOKEN"}) {
		t.Errorf("the token %q is in %q", seen.Token, seen.Environment)
	}
	if !strings.Contains(string(seen.Elsewhere), "hook.json") || strings.Contains(string(seen.Elsewhere), controlToken) {
		t.Errorf("the token is in %s", seen.Elsewhere)
	}
}

// TestNodeHookWithoutToken: a Node whose parent took the token out of its
// environment works, is not captured, and that is reported.
func TestNodeHookWithoutToken(t *testing.T) {
	path := need.Node(t)
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	const script = `
const { execFileSync } = require('node:child_process');
const { UNWIRE_HOOK_TOKEN, ...env } = process.env;
const client = "require('node:http').get(process.argv[1], (res) => res.pipe(process.stdout))";
process.stdout.write(execFileSync(process.execPath, ['-e', client, process.argv[1]], { env }));`
	r := newRecorder(t)
	var report launch.Report
	code, out, stderr, err := r.run("", []string{path, "-e", script, plain.URL + "/a"}, func(o *launch.Options) { o.Report = &report })
	if code != 0 || err != nil || out != "hello /a" {
		t.Errorf("status %d, %v, %q: %s", code, err, out, stderr)
	}
	if got := r.recorded(); len(got) != 0 || !report.Hooked || !report.NoToken {
		t.Errorf("recorded %q, %+v", got, report)
	}
}

// TestNodeHookRefusedRoute: a connection whose route the proxy refuses is broken
// off, as it would go elsewhere.
func TestNodeHookRefusedRoute(t *testing.T) {
	path := need.Node(t)
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	go func() {
		for {
			conn, err := elsewhere.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/unwire/redirect", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"addr": elsewhere.Addr().String()})
	})
	mux.HandleFunc("POST /.well-known/unwire/reach", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /.well-known/unwire/route", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "taken", http.StatusConflict) })
	proxy := httptest.NewServer(mux)
	defer proxy.Close()
	r := newRecorder(t)
	r.url = proxy.URL
	const script = `require('node:http').get('http://127.0.0.1:7/').on('error', (e) => console.log(e.message))`
	code, out, stderr, err := r.run("", []string{path, "-e", script}, nil)
	if want := "unwire: the proxy refuses the route to 127.0.0.1:7 (status 409)\n"; code != 0 || err != nil || out != want {
		t.Errorf("status %d, %v, %q: %s", code, err, out, stderr)
	}
}

// TestNodeHookUnderAttack: what announces routes without the token while a
// hooked program connects gets none of its traffic, and a program that announces
// a second route with the token changes nothing.
func TestNodeHookUnderAttack(t *testing.T) {
	path := need.Node(t)
	stolen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the attacker's server got %s %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer stolen.Close()
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	r := newRecorder(t)
	file := filepath.Join(t.TempDir(), "attacked.cjs")
	// The hook leaves connections to the proxy alone.
	const script = `
const http = require('node:http');
const [origin, evil] = process.argv.slice(2);
const proxy = process.env.HTTP_PROXY;
const announce = (port, headers) => new Promise((resolve, reject) => {
  const req = http.request(proxy + '/.well-known/unwire/route', { method: 'POST', headers }, (res) => { res.resume(); resolve(res.statusCode); });
  req.on('error', reject).end(JSON.stringify({ port, to: evil.replace('http://', '') }));
});
let result;
const req = http.request(origin + '/a', { method: 'POST', headers: { authorization: 'Bearer made-up' }, agent: false }, (res) => {
  res.on('data', (d) => console.log(String(d))).on('end', () => console.log(result));
});
req.on('socket', (socket) => socket.on('connect', async () => {
  await new Promise((resolve) => setTimeout(resolve, 1000)); // the hook's own message comes first
  result = await Promise.all([{ origin: 'https://evil.example' }, {}, { 'unwire-token': process.env.UNWIRE_HOOK_TOKEN }].map((h) => announce(socket.localPort, h)));
  req.end('done'); // the connection is open until then
}));`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr, err := r.run("", []string{path, file, plain.URL, stolen.URL}, nil)
	if want := "hello /a\n[ 403, 403, 409 ]\n"; code != 0 || err != nil || out != want {
		t.Errorf("status %d, %v, %q: %s", code, err, out, stderr)
	}
	if got := r.recorded(); !slices.Equal(got, []string{"/a 1.1 complete"}) {
		t.Errorf("recorded %q", got)
	}
}
