//go:build unix

package launch_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/mitm/launch"
)

// TestNodeHookKeepsErrors: connecting to where nobody listens fails as without
// the hook, before anything believes that it is connected. Each failure is recorded.
func TestNodeHookKeepsErrors(t *testing.T) {
	path := need.Node(t)
	port := unusedPort(t)
	argv := []string{path, "testdata/refused.cjs", port}
	want, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t)
	code, out, stderr, err := r.run("", argv, nil)
	if code != 0 || err != nil || out != string(want) {
		t.Errorf("status %d, %v; with the hook\n%swithout\n%s%s", code, err, out, want, stderr)
	}
	failures := r.list(func(x *captures.Exchange) string {
		return fmt.Sprintf("%s %s %t", x.Transport, x.Outcome, strings.Contains(x.Error, "connection refused"))
	})
	if len(failures) < 6 {
		t.Errorf("recorded %d failed connections, want one for each way: %q", len(failures), failures)
	}
	for _, f := range failures {
		if !strings.HasSuffix(f, " tcp failed true") {
			t.Errorf("recorded %s", f)
		}
	}
	if strings.Count(string(want), "ECONNREFUSED") < 6 {
		t.Errorf("without the hook: %s", want)
	}
}

// unusedPort is a port on which nobody listens. It is none of those that systems
// give to whoever asks for any, as another test soon would have it.
func unusedPort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// TestNodeHookUnknownName: the same for a name that does not exist.
func TestNodeHookUnknownName(t *testing.T) {
	path := need.Node(t)
	const script = `require('node:net').connect(443, 'no-such-host.invalid').on('error', (e) => console.log(e.code, e.syscall, e.hostname))`
	code, out, stderr, err := newRecorder(t).run("", []string{path, "-e", script}, nil)
	if code != 0 || err != nil || out != "ENOTFOUND getaddrinfo no-such-host.invalid\n" && !strings.HasPrefix(out, "E") {
		t.Errorf("status %d, %v, %q: %s", code, err, out, stderr)
	}
}

// TestBundledCLI: a CLI with its libraries in one file, as an ES module and as
// a CommonJS script with a shebang, is captured as its sources are.
func TestBundledCLI(t *testing.T) {
	path := need.Node(t, "../testdata/node")
	const client = "../testdata/node/unary.mjs"
	bundler, err := filepath.Abs("../testdata/node/node_modules/.bin/esbuild")
	if err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := r.Header.Get("Content-Type"); kind != "" { // a unary call, echoed
			w.Header().Set("Content-Type", kind)
			_, _ = io.Copy(w, r.Body)
			return
		}
		hello(w, r)
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	for name, c := range map[string]struct {
		source, format string
		args           []string
		said, recorded string
	}{
		"ES module, connect-es": {client, "esm", []string{origin.URL}, "answer hello", "/unwire.test.v1.EchoService/Unary 2 complete"},
		"CommonJS":              {"testdata/cli.cjs", "cjs", []string{origin.URL}, "hello /worker", "/worker 2 complete"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cli."+map[string]string{"esm": "mjs", "cjs": "cjs"}[c.format])
			args := []string{c.source, "--bundle", "--minify", "--platform=node", "--format=" + c.format, "--outfile=" + file}
			if c.format == "esm" { // what the bundle's CommonJS parts need
				args = append(args, `--banner:js=import{createRequire}from'node:module';const require=createRequire(import.meta.url);`)
			}
			if out, err := exec.Command(bundler, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r := newRecorder(t, origin)
			var report launch.Report
			code, out, stderr, err := r.run("", append([]string{path, file}, c.args...), func(o *launch.Options) { o.Report = &report })
			if code != 0 || err != nil || !strings.Contains(out, c.said) || !report.Hooked {
				t.Errorf("status %d, %v, %q: %s", code, err, out, stderr)
			}
			if got := strings.Join(r.recorded(), "\n"); !strings.Contains(got, c.recorded) {
				t.Errorf("recorded\n%s", got)
			}
		})
	}
}
